package lexical

import "strings"

// baseForm returns the form under which a word is indexed when a stemmer cannot know it: "went" is "go", "mum" is "mother". Words
// mapped here are other forms, spellings or everyday short forms of the same word, never mere synonyms.
func baseForm(word string) string {
	if base, ok := baseForms[word]; ok {
		return base
	}
	return word
}

// baseForms maps forms to the first word of their line.
var baseForms = func() map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(`
		arise arose arisen
		bear bore borne
		beat beaten
		become became
		begin began begun
		bend bent
		bet betting
		bite bit bitten
		bleed bled
		blow blew blown
		break broke broken
		breed bred
		bring brought
		build built
		burn burnt
		buy bought
		catch caught
		choose chose chosen choice choices
		come came
		creep crept
		deal dealt
		decide decision decisions
		dig dug
		draw drew drawn
		dream dreamt
		drink drank drunk
		drive drove driven
		eat ate eaten
		fall fell fallen
		feed fed
		feel felt
		fight fought
		find found
		flee fled
		fly flew flown flies flight flights
		forbid forbade forbidden
		forget forgot forgotten
		forgive forgave forgiven
		freeze froze frozen
		give gave given
		go went gone
		grow grew grown growth
		hang hung
		hear heard
		hide hid hidden
		hold held
		keep kept
		kneel knelt
		know knew known
		lay laid
		lead led
		lean leant
		learn learnt
		leave left
		lend lent
		light lit
		lose lost loss losses
		make made
		mean meant
		meet met
		overcome overcame
		pay paid
		prove proven proof proofs
		ride rode ridden
		ring rang rung
		rise rose risen
		run ran
		say said
		see saw seen
		seek sought
		sell sold sale sales
		send sent
		sew sewn
		shake shook shaken
		shine shone
		shoot shot
		show shown
		shrink shrank shrunk
		sing sang sung song songs
		sink sank sunk
		sit sat
		sleep slept
		slide slid
		speak spoke spoken speech speeches
		spend spent
		spin spun
		spring sprang sprung
		stand stood
		steal stole stolen
		stick stuck
		sting stung
		strike struck
		strive strove striven
		swear swore sworn
		sweep swept
		swell swollen
		swim swam swum
		swing swung
		take took taken
		teach taught
		tear tore torn
		tell told
		think thought thoughts
		throw threw thrown
		undergo underwent undergone
		understand understood
		wake woke woken
		wear wore worn
		weave wove woven
		weep wept
		win won
		withdraw withdrew withdrawn
		withstand withstood
		write wrote written

		arrive arrival arrivals
		advise advice
		believe belief beliefs
		compete competition competitions competitor competitors
		describe description descriptions
		die dead died dies dying death deaths
		explain explanation explanations
		graduate graduation
		maintain maintenance
		marry married marries marriage marriages
		paint painting paintings painter painters
		receive receipt receipts
		solve solution solutions
		succeed success successes successful

		child children kid kids
		foot feet
		goose geese
		half halves
		knife knives
		leaf leaves
		life lives
		loaf loaves
		man men
		mouse mice
		person people persons
		shelf shelves
		thief thieves
		tooth teeth
		wife wives
		wolf wolves
		woman women
		bad worse worst
		good better best

		mother mothers mom moms mum mums mommy mummy mama
		father fathers dad dads daddy papa
		grandmother grandmothers grandma grandmas granny
		grandfather grandfathers grandpa grandpas granddad
		advertisement advertisements ad ads advert adverts
		airplane airplanes aeroplane aeroplanes plane planes
		bicycle bicycles bike bikes
		examination examinations exam exams
		laboratory laboratories lab labs
		mathematics math maths
		photo photos photograph photographs pic pics
		refrigerator refrigerators fridge fridges
		telephone telephones phone phones
		television televisions tv tvs telly
		vegetable vegetables veggie veggies

		administrator administrators admin admins
		application applications app apps
		authentication auth
		configuration configurations config configs
		database databases db dbs
		developer developers dev devs
		directory directories dir dirs
		document documents documentation doc docs
		environment environments env envs
		information info
		message messages msg msgs
		parameter parameters param params
		repository repositories repo repos

		analyze analyse analysis analyses analysing analyzing analysed analyzed
		behavior behaviour behaviors behaviours
		center centre centers centres
		color colour colors colours
		favorite favourite favorites favourites
		gray grey
		jewelry jewellery
		license licence licenses licences
		neighbor neighbour neighbors neighbours
		organize organise organization organisation organizations organisations
		practice practise
		program programme programs programmes
		recognize recognise recognized recognised
		theater theatre theaters theatres`) {
		forms := strings.Fields(line)
		for i, w := range forms {
			if i > 0 {
				m[w] = forms[0]
			}
		}
	}
	return m
}()

// isTimeWord reports English words that say when something was or will be.
func isTimeWord(word string) bool {
	_, ok := timeWords[word]
	return ok
}

var timeWords = func() map[string]struct{} {
	m := make(map[string]struct{})
	for w := range strings.FieldsSeq(`
		yesterday today tonight tomorrow ago last next since until recently
		morning evening day week weekend month year spring summer autumn fall winter
		monday tuesday wednesday thursday friday saturday sunday
		january february march april may june july august september october november december`) {
		m[w] = struct{}{}
	}
	return m
}()

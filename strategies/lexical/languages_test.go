package lexical

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// phrasebook makes sentences and questions in a language. Every row is the form that sentences have and the form that questions have; no word of a question
// but the small ones stands in its sentence as it stands there. The sets are made of few words: they show that forms meet, also where the language is not
// seen, and not how well a language is searched.
type phrasebook struct {
	lang               language
	sentence, question string // {n} who, {v} does, {t} what, {p} where
	names              string
	verbs, things      string // forms with "|" between them, rows with ","
	places             string
}

func rows(s string) [][2]string {
	var out [][2]string
	for row := range strings.SplitSeq(s, ",") {
		a, b, _ := strings.Cut(strings.TrimSpace(row), "|")
		out = append(out, [2]string{a, b})
	}
	return out
}

var phrasebooks = map[string]phrasebook{
	"de": {
		lang: german, sentence: "{n} {v} gestern mit Mühe {t} {p}.", question: "Wer wollte denn {p} {t} {v}?", names: "Anna Lukas Greta Jonas Frieda Emil",
		verbs:  "kaufte|kaufen, verkaufte|verkaufen, suchte|suchen, malte|malen, reparierte|reparieren, zeigte|zeigen, holte|holen, reinigte|reinigen, zerstörte|zerstören, versteckte|verstecken",
		things: "zwei Bücher|ein Buch, zwei Briefe|einen Brief, die Stühle|den Stuhl, die Blumen|eine Blume, drei Bilder|ein Bild, die Lampen|eine Lampe, zwei Pferde|ein Pferd, die Mäntel|einen Mantel, die Äpfel|einen Apfel, die Karten|eine Karte, die Hemden|ein Hemd, zwei Uhren|die Uhr, die Gläser|ein Glas, die Teppiche|einen Teppich",
		places: "im Garten|in den Gärten, in der Küche|in den Küchen, in der Schule|in Schulen, auf dem Markt|auf Märkten, am Bahnhof|an Bahnhöfen, in der Kirche|in Kirchen, auf der Straße|auf Straßen, im Wald|in den Wäldern, am Hafen|an den Häfen, im Büro|in den Büros",
	},
	"fr": {
		lang: french, sentence: "Hier {n} {v} avec soin {t} {p}.", question: "Qui va {v} {t} {p} ?", names: "Camille Hugo Manon Louis Chloé Jules",
		verbs:  "achetait|acheter, vendait|vendre, cherchait|chercher, dessinait|dessiner, réparait|réparer, montrait|montrer, oubliait|oublier, apportait|apporter, lavait|laver, cachait|cacher",
		things: "deux livres|un livre, les lettres|une lettre, les chaises|une chaise, trois fleurs|une fleur, les tableaux|un tableau, les lampes|une lampe, deux chevaux|un cheval, les manteaux|un manteau, les pommes|une pomme, les cartes|une carte, les chemises|une chemise, deux montres|une montre, les verres|un verre, les journaux|un journal",
		places: "dans le jardin|dans les jardins, dans la cuisine|dans les cuisines, à l'école|dans les écoles, au marché|sur les marchés, à la gare|dans les gares, dans l'église|dans les églises, dans la rue|dans les rues, dans la forêt|dans les forêts, au port|dans les ports, au bureau|dans les bureaux",
	},
	"es": {
		lang: spanish, sentence: "Ayer {n} {v} con cuidado {t} {p}.", question: "¿Quién va a {v} {t} {p}?", names: "Lucía Mateo Carmen Pablo Elena Hugo",
		verbs:  "compró|comprar, vendió|vender, buscó|buscar, pintó|pintar, reparó|reparar, mostró|mostrar, olvidó|olvidar, llevó|llevar, lavó|lavar, escondió|esconder",
		things: "dos libros|un libro, las cartas|una carta, las sillas|una silla, tres flores|una flor, los cuadros|un cuadro, las lámparas|una lámpara, dos caballos|un caballo, los abrigos|un abrigo, las manzanas|una manzana, las camisas|una camisa, los relojes|un reloj, los vasos|un vaso, los periódicos|un periódico, las llaves|una llave",
		places: "en el jardín|en los jardines, en la cocina|en las cocinas, en la escuela|en las escuelas, en el mercado|en los mercados, en la estación|en las estaciones, en la iglesia|en las iglesias, en la calle|en las calles, en el bosque|en los bosques, en el puerto|en los puertos, en la oficina|en las oficinas",
	},
	"it": {
		lang: italian, sentence: "Ieri {n} {v} con cura {t} {p}.", question: "Chi vuole {v} {t} {p}?", names: "Giulia Luca Chiara Marco Elisa Paolo",
		verbs:  "comprava|comprare, vendeva|vendere, cercava|cercare, dipingeva|dipingere, riparava|riparare, mostrava|mostrare, dimenticava|dimenticare, portava|portare, lavava|lavare, nascondeva|nascondere",
		things: "due libri|un libro, le lettere|una lettera, le sedie|una sedia, tre fiori|un fiore, i quadri|un quadro, le lampade|una lampada, due cavalli|un cavallo, i cappotti|un cappotto, le mele|una mela, le camicie|una camicia, gli orologi|un orologio, i bicchieri|un bicchiere, i giornali|un giornale, le chiavi|una chiave",
		places: "nel giardino|nei giardini, nella cucina|nelle cucine, nella scuola|nelle scuole, al mercato|nei mercati, alla stazione|nelle stazioni, nella chiesa|nelle chiese, sulla strada|sulle strade, nel bosco|nei boschi, al porto|nei porti, nell'ufficio|negli uffici",
	},
	"ru": {
		lang: russian, sentence: "Вчера {n} долго {v} {t} {p}.", question: "Кто хочет {v} {t} {p}?", names: "Анна Мария Ольга Вера Нина Елена",
		verbs:  "купила|купить, продала|продать, искала|искать, рисовала|рисовать, чинила|чинить, показала|показать, забыла|забыть, принесла|принести, вымыла|вымыть, спрятала|спрятать",
		things: "книги|книгу, письма|письмо, газеты|газету, картины|картину, лампы|лампу, лошадей|лошадь, куртки|куртку, яблоки|яблоко, рубашки|рубашку, стаканы|стакан, журналы|журнал, ключи|ключ, тарелки|тарелку, билеты|билет",
		places: "в саду|в садах, на кухне|на кухнях, в школе|в школах, на рынке|на рынках, на вокзале|на вокзалах, в церкви|в церквях, на улице|на улицах, в лесу|в лесах, в порту|в портах, в кабинете|в кабинетах",
	},
	"tr": {
		lang: turkish, sentence: "Dün {n} yine {p} {t} {v}.", question: "Kim {p} {t} {v} istiyor?", names: "Ayşe Mehmet Zeynep Emre Elif Can",
		verbs:  "sattı|satmak, aradı|aramak, boyadı|boyamak, onardı|onarmak, gösterdi|göstermek, unuttu|unutmak, getirdi|getirmek, yıkadı|yıkamak, sakladı|saklamak, buldu|bulmak",
		things: "kitapları|kitap, mektupları|mektup, sandalyeleri|sandalye, çiçekleri|çiçek, resimleri|resim, lambaları|lamba, atları|at, paltoları|palto, elmaları|elma, gömlekleri|gömlek, saatleri|saat, bardakları|bardak, gazeteleri|gazete, anahtarları|anahtar",
		places: "bahçede|bahçelerde, mutfakta|mutfaklarda, okulda|okullarda, pazarda|pazarlarda, istasyonda|istasyonlarda, kilisede|kiliselerde, sokakta|sokaklarda, ormanda|ormanlarda, limanda|limanlarda, ofiste|ofislerde",
	},
	"fi": {
		lang: finnish, sentence: "Eilen {n} taas {v} {t} {p}.", question: "Kuka haluaa {v} {t} {p}?", names: "Aino Eero Helmi Väinö Saara Otso",
		verbs:  "osti|ostaa, etsi|etsiä, maalasi|maalata, korjasi|korjata, näytti|näyttää, unohti|unohtaa, kantoi|kantaa, pesi|pestä, piilotti|piilottaa, löysi|löytää",
		things: "kirjoja|kirjan, kirjeitä|kirjeen, tuoleja|tuolin, kukkia|kukan, tauluja|taulun, lamppuja|lampun, hevosia|hevosen, takkeja|takin, omenoita|omenan, paitoja|paidan, kelloja|kellon, laseja|lasin, lehtiä|lehden, avaimia|avaimen",
		places: "puutarhassa|puutarhoissa, keittiössä|keittiöissä, koulussa|kouluissa, torilla|toreilla, asemalla|asemilla, kirkossa|kirkoissa, kadulla|kaduilla, metsässä|metsissä, satamassa|satamissa, toimistossa|toimistoissa",
	},
	"hu": {
		lang: hungarian, sentence: "Tegnap {n} megint a {p} {t} {v}.", question: "Ki akar a {p} {t} {v}?", names: "Réka Bence Eszter Máté Dóra Gergő",
		verbs:  "vásárolt|vásárolni, árult|árulni, keresett|keresni, festett|festeni, javított|javítani, mutatott|mutatni, felejtett|felejteni, hozott|hozni, mosott|mosni, rejtett|rejteni",
		things: "könyveket|könyvet, leveleket|levelet, székeket|széket, virágokat|virágot, képeket|képet, lámpákat|lámpát, lovakat|lovat, kabátokat|kabátot, almákat|almát, ingeket|inget, órákat|órát, poharakat|poharat, újságokat|újságot, kulcsokat|kulcsot",
		places: "kertben|kertekben, konyhában|konyhákban, iskolában|iskolákban, piacon|piacokon, állomáson|állomásokon, templomban|templomokban, utcán|utcákon, erdőben|erdőkben, kikötőben|kikötőkben, irodában|irodákban",
	},
	"pl": {
		lang: polish, sentence: "Wczoraj {n} znowu {v} {t} {p}.", question: "Kto chce {v} {t} {p}?", names: "Zofia Ewa Hanna Maja Julia Lena",
		verbs:  "kupiła|kupić, sprzedała|sprzedać, szukała|szukać, malowała|malować, naprawiła|naprawić, pokazała|pokazać, zapomniała|zapomnieć, przyniosła|przynieść, umyła|umyć, schowała|schować",
		things: "książki|książkę, listy|list, krzesła|krzesło, kwiaty|kwiat, obrazy|obraz, lampy|lampę, konie|konia, płaszcze|płaszcz, jabłka|jabłko, koszule|koszulę, zegarki|zegarek, szklanki|szklankę, gazety|gazetę, klucze|klucz",
		places: "w ogrodzie|w ogrodach, w kuchni|w kuchniach, w szkole|w szkołach, na rynku|na rynkach, na dworcu|na dworcach, w kościele|w kościołach, na ulicy|na ulicach, w lesie|w lasach, w porcie|w portach, w biurze|w biurach",
	},
	"ar": {
		lang: arabic, sentence: "أمس {v} {n} {t} {p}.", question: "من يريد أن {v} {t} {p}؟", names: "ليلى مريم سلمى هدى نورة زينب",
		verbs:  "رسمت|يرسم, كسرت|يكسر, غسلت|يغسل, حملت|يحمل, صنعت|يصنع, عرضت|يعرض, سرقت|يسرق, نقلت|ينقل, فحصت|يفحص, طلبت|يطلب",
		things: "كتابا|الكتاب, مفتاحا|المفتاح, قميصا|القميص, حصانا|الحصان, مصباحا|المصباح, تفاحة|التفاحات, ساعة|الساعات, سيارة|السيارات, بطاقة|البطاقات, زهرة|الزهرات, طاولة|الطاولات, مجلة|المجلات, لوحة|اللوحات, معطفا|المعطف",
		places: "في الحديقة|في حديقته, في المطبخ|في مطبخهم, في المدرسة|في مدرستها, في السوق|في سوقنا, في المحطة|في محطتهم, في الكنيسة|في كنيستهم, في الشارع|في شارعنا, في الغابة|في غابتهم, في المكتبة|في مكتبتهم, في الفندق|في فندقهم",
	},
	"hi": {
		lang: indic, sentence: "कल {n} ने {p} {t} {v}।", question: "कौन {p} {t} {v} चाहता है?", names: "मीरा राधा अंजलि कविता सीमा गीता",
		verbs:  "खरीदीं|खरीदना, बेचीं|बेचना, ढूँढीं|ढूँढना, बनाईं|बनाना, दिखाईं|दिखाना, भूलीं|भूलना, उठाईं|उठाना, सजाईं|सजाना, छिपाईं|छिपाना, तोड़ीं|तोड़ना",
		things: "किताबें|किताब, चिट्ठियाँ|चिट्ठी, कुर्सियाँ|कुर्सी, तस्वीरें|तस्वीर, घोड़े|घोड़ा, कमीज़ें|कमीज़, घड़ियाँ|घड़ी, चाबियाँ|चाबी, टोकरियाँ|टोकरी, मेज़ें|मेज़, गाड़ियाँ|गाड़ी, चादरें|चादर, थैले|थैला, पंखे|पंखा",
		places: "बगीचे में|बगीचों में, रसोई में|रसोइयों में, स्कूल में|स्कूलों में, बाज़ार में|बाज़ारों में, स्टेशन पर|स्टेशनों पर, मंदिर में|मंदिरों में, सड़क पर|सड़कों पर, जंगल में|जंगलों में, बंदरगाह में|बंदरगाहों में, दफ़्तर में|दफ़्तरों में",
	},
}

// make returns a thousand different sentences and a question for each.
func (p *phrasebook) make(seed uint64) (sentences, questions []string) {
	rng := rand.New(rand.NewPCG(seed, 7))
	verbs, things, places, names := rows(p.verbs), rows(p.things), rows(p.places), strings.Fields(p.names)
	var all [][3]int
	for v := range verbs {
		for t := range things {
			for at := range places {
				all = append(all, [3]int{v, t, at})
			}
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, c := range all[:1000] {
		fill := func(template string, form int) string {
			return strings.NewReplacer("{n}", names[rng.IntN(len(names))], "{v}", verbs[c[0]][form], "{t}", things[c[1]][form], "{p}", places[c[2]][form]).Replace(template)
		}
		sentences, questions = append(sentences, fill(p.sentence, 0)), append(questions, fill(p.question, 1))
	}
	return sentences, questions
}

// plainBM25 ranks by the words as they are written.
func plainBM25(sentences, questions []string) float64 {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	}
	holds := map[string]map[int]bool{}
	for i, s := range sentences {
		for _, w := range words(s) {
			if holds[w] == nil {
				holds[w] = map[int]bool{}
			}
			holds[w][i] = true
		}
	}
	found := 0
	for i, q := range questions {
		scores := make([]float64, len(sentences))
		for _, w := range words(q) {
			n := float64(len(holds[w]))
			for d := range holds[w] {
				scores[d] += math.Log(1 + (float64(len(sentences))-n+0.5)/(n+0.5))
			}
		}
		better := 0
		for _, s := range scores {
			if s >= scores[i] {
				better++
			}
		}
		if better <= 10 {
			found++
		}
	}
	return 100 * float64(found) / float64(len(questions))
}

func TestLanguages(t *testing.T) {
	if len(phrasebooks) < 10 {
		t.Fatalf("%d languages, want 10", len(phrasebooks))
	}
	for name, p := range phrasebooks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sentences, questions := p.make(3)
			cfg := DefaultConfig()
			s := newSegment(&cfg)
			day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			seen := 0
			for i, text := range sentences {
				if languageOf(text, false) == p.lang {
					seen++
				}
				// Every sentence is a session of its own: sentences beside each other have nothing to do with each other.
				s.put(core.Entry{ID: fmt.Sprint("e", i), Agent: "a", Session: fmt.Sprint("s", i), Role: message.User, Type: core.TypeMessage, Time: day, Message: message.New(message.User, text)})
			}
			asked := questions[:250]
			measure := func(asked []string) float64 {
				found := 0
				for i, q := range asked {
					hits, err := s.search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: "a"}, Text: q, Limit: 10}, new(scratch))
					if err != nil {
						t.Fatal(err)
					}
					if slices.ContainsFunc(hits, func(m match) bool { return string(s.ids.at(s.docs[m.doc].id)) == fmt.Sprint("e", i) }) {
						found++
					}
				}
				return 100 * float64(found) / float64(len(asked))
			}
			bare := make([]string, len(asked)) // without the words that tell the language
			for i, q := range asked {
				bare[i] = strings.Join(slices.DeleteFunc(strings.FieldsFunc(q, func(r rune) bool { return strings.ContainsRune(" ?¿؟", r) }), func(w string) bool {
					return functionWords[strings.ToLower(w)] != 0
				}), " ")
			}
			r, unseen, plain := measure(asked), measure(bare), plainBM25(sentences, asked)
			t.Logf("%s: R@10 %.1f, of bare words %.1f, words as they are written %.1f, language seen in %.1f %% of the sentences", name, r, unseen, plain, float64(seen)/10)
			if plain >= 90 {
				t.Errorf("words as they are written find %.1f %%: the set shows nothing", plain)
			}
			if unseen < 70 {
				t.Errorf("R@10 %.1f of words that do not tell their language, want at least 70", unseen)
			}
			if r < 94 {
				t.Errorf("R@10 %.1f, want at least 94", r)
			}
		})
	}
}

// Package questions reads data sets that retrieval is measured with: conversations, and questions about them with the messages that hold the
// answer.
//
//	set, err := questions.Open("locomo-dev.json")
//
// What a file or folder holds is seen from its content. Three forms are known:
//
// LoCoMo: a JSON array of samples. "conversation" has "session_1", "session_2", ... (speaker, dia_id, text, blip_caption) with
// "session_1_date_time"; "qa" has question, answer, evidence and category (1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial).
//
// BEAM: a folder with chat.json and pq.json, or a folder of such folders.
//
// JSON lines, the form for data of your own. Each line is a message or a question:
//
//	{"conversation":"c1","session":"monday","id":"m1","role":"user","name":"Ana","time":"2025-05-05T09:00:00Z","text":"The boat is called Wren."}
//	{"conversation":"c1","question":"What is the boat called?","answer":"Wren","category":"names","evidence":["m1"]}
//
// A line with "text" is a message, one with "question" a question. Of a message "id" and "text" are required; "role" is user, assistant, system or tool, user when it
// is left out; "name" is who spoke, "time" when (RFC 3339). Of a question "question" and "evidence" are required: the ids of the messages of the
// same conversation that hold the answer. A question with an empty list is kept but not measured. "answer" and "category" are optional, "conversation" and "session" are "1"
// when left out. Messages are in order; questions may stand anywhere. Other keys are errors.
//
// Every error names file, place, field and what to do, and wraps core.ErrInvalid when the content is wrong.
package questions

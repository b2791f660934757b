package questions

// Parsed reads data as every form there is, as one of the two files of a chat beside a good other one too, and returns what could be read.
func Parsed(data, chat, probes []byte) []*Dataset {
	var out []*Dataset
	if d, err := parse(data, "x"); err == nil && d.finish() == nil {
		out = append(out, d)
	}
	for _, files := range [][2][]byte{{data, probes}, {chat, data}} {
		if c, _, err := readBEAM(files[0], "1/chat.json", files[1], "1/pq.json"); err == nil {
			d := &Dataset{Format: formatBEAM, Unit: Passage, Conversations: []Conversation{c}}
			if d.finish() == nil {
				out = append(out, d)
			}
		}
	}
	return out
}

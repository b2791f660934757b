package tiktoken

import "testing"

func FuzzCount(f *testing.F) {
	for _, text := range []string{
		"", "plain words, don't they'VE", "x = 1\n    \n    return", " \t\r\n \u00a0a", "漢ABC漢's", ".\u0301A\u0301'll",
		"1234567 ²٣", "{\"a\": [1, 2.5e-3, null]}//\r\n", "<|endoftext|>", "a\xff\xc3 \xed\xa0\x80", "नमस्ते สวัสดี 👨‍💻", "ǅʰA'sB",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1024 {
			return // the library takes quadratic time
		}
		for _, name := range Encodings() {
			c, err := New(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := differs(referenceOf(t, name), c.enc, text); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func FuzzParseVocabulary(f *testing.F) {
	f.Add([]byte("AA== 0\nAAA= 1\n"))
	f.Add([]byte("AA== 99999999999\n"))
	f.Add([]byte("\n\n  \nAAAA"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = parseVocabulary(data)
	})
}

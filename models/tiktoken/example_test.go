package tiktoken_test

import (
	"fmt"

	"github.com/contextengine/contextengine/models/tiktoken"
)

func ExampleNew() {
	counter, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(counter.Encoding(), counter.Count("Hello, world!"))
	// Output: o200k_base 4
}

func ExampleForModel() {
	encoding, ok := tiktoken.ForModel("text-embedding-3-small")
	fmt.Println(encoding, ok)
	// Output: cl100k_base true
}

func ExampleAtLeast() {
	o200k, err := tiktoken.New("o200k_base")
	if err != nil {
		fmt.Println(err)
		return
	}
	cl100k, err := tiktoken.New("cl100k_base")
	if err != nil {
		fmt.Println(err)
		return
	}
	count := tiktoken.AtLeast(o200k.Count, cl100k.Count)
	text := "Зачем считать токены, если можно угадать?"
	fmt.Println(o200k.Count(text), cl100k.Count(text), count(text))
	// Output: 12 17 17
}

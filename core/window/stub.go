package window

// StubKind says why an entry's content is not shown as it is.
type StubKind string

// The kinds of stubs.
const (
	// Clipped content keeps its head and tail around a marker, or its text without the images that came with it.
	Clipped StubKind = "clip"
	// Masked content is replaced by a marker.
	Masked StubKind = "mask"
)

// Stub is what the window shows of an entry instead of all its content. Once made it does not change while the
// entry is in the window, except that a step or compaction may shorten more of the entry.
type Stub struct {
	Kind StubKind `json:"kind"`
	// Texts holds, by the index of the message's part, what is shown instead of that part. It is never written to once it is made: copies share it.
	Texts map[int]string `json:"texts"`
	// Tokens is what the entry costs so: these texts, its other parts and the overhead per message.
	Tokens int `json:"tokens"`
}

package conformance

import "testing"

func TestInOrder(t *testing.T) {
	for text, want := range map[string]string{
		"./b\n./a/\n./a/c\n": "./a/\n./a/c\n./b\n",
		"./b\n./a":           "./b\n./a", // its end is missing
		"b\na\n":             "b\na\n",
		"./b\na\n":           "./b\na\n",
		"":                   "",
		"\n":                 "\n",
		"./b":                "./b",
	} {
		if got := string(inOrder([]byte(text))); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

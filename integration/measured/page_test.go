package measured

import "testing"

func TestPageKeepsItsText(t *testing.T) {
	const command = "make bench"
	page := "# Title\n\n" + begin(command) + "old\n" + end + "\nmore\n"
	got, err := replace(page, command, "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Title\n\n" + begin(command) + "\nnew\n\n" + end + "\nmore\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, page := range []string{"# Title\n", "# Title\n\n" + begin("make other") + end} {
		if _, err := replace(page, command, "new\n"); err == nil {
			t.Errorf("%q has no place for the text, and was written", page)
		}
	}
}

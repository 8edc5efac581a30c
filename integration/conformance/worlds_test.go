package conformance

import "testing"

func TestUsersSubmitInTurn(t *testing.T) {
	w, err := WorldNamed("users")
	if err != nil {
		t.Fatal(err)
	}
	cases, count := Cases(), map[string]int{}
	for i, c := range cases {
		user := w.UserOf(c.Name)
		if i > 0 && user == w.UserOf(cases[i-1].Name) {
			t.Errorf("%s and the case before it are both submitted by %s", c.Name, user)
		}
		count[user]++
	}
	for _, user := range w.Users {
		if count[user] < len(cases)/len(w.Users) {
			t.Errorf("%s submits %d of %d cases", user, count[user], len(cases))
		}
	}
	if user := (World{}).UserOf(cases[0].Name); user != "" {
		t.Errorf("without users, %s submits", user)
	}
}

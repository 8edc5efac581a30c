package guestinit

import "testing"

func TestWithSpeed(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"one", "processor\t: 0\nhost\t\t: Linux\n\n", "processor\t: 0\nhost\t\t: Linux\ncpu MHz\t\t: 2000.000\n\n"},
		{"one of two has it", "processor\t: 0\ncpu MHz\t\t: 5\n\nprocessor\t: 1\n\n", "processor\t: 0\ncpu MHz\t\t: 5\n\nprocessor\t: 1\ncpu MHz\t\t: 2000.000\n\n"},
		{"two", "processor\t: 0\n\nprocessor\t: 1\n", "processor\t: 0\ncpu MHz\t\t: 2000.000\n\nprocessor\t: 1\ncpu MHz\t\t: 2000.000\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := withSpeed(tc.text); got != tc.want {
				t.Errorf("withSpeed = %q, want %q", got, tc.want)
			}
		})
	}
}

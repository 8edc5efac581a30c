package main

import "testing"

// Half of the turns change the image, but not alternately.
func TestUnlikeTurns(t *testing.T) {
	images := unlikeTurns(100)
	if len(images) != 101 {
		t.Fatalf("%d images", len(images))
	}
	changes, byParity := 0, [2]int{}
	for i := 1; i < len(images); i++ {
		if images[i] != images[i-1] {
			changes++
			byParity[i%2]++
		}
	}
	if changes != 50 || byParity[0] < 20 || byParity[1] < 20 {
		t.Errorf("%d changes, %d and %d of them in even and odd turns", changes, byParity[0], byParity[1])
	}
}

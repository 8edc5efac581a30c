package main

import (
	"fmt"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

const (
	callEvent    = 304
	callGuidance = 305
)

// takeAdCall takes a call that has one ad as its field.
func takeAdCall(s *cedar.Stream, number int64) (*classads.Ad, error) {
	n, err := s.GetInt()
	if err != nil {
		return nil, err
	}
	if n != number {
		return nil, fmt.Errorf("call %d, want %d", n, number)
	}
	ad, err := s.GetAd()
	if err != nil {
		return nil, err
	}
	return ad, s.EndOfMessage()
}

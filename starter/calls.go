package main

import (
	"fmt"
	"maps"
	"sync"
)

// calls counts this process's calls to the API server, by "VERB STATUS". Its methods may be
// called from any goroutine.
type calls struct {
	mu     sync.Mutex
	counts map[string]int64
}

// add counts an answer; status is 0 if there was none.
func (c *calls) add(verb string, status int) {
	key := fmt.Sprint(verb, " ", status)
	if status == 0 {
		key = verb + " none"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[string]int64)
	}
	c.counts[key]++
}

// soFar are the calls so far.
func (c *calls) soFar() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

package simulation

import (
	"container/heap"
	"time"
)

// clock is simulated time: what is to happen, in its order.
type clock struct {
	now    time.Duration
	events events
	count  int
}

type event struct {
	at    time.Duration
	order int // of those at the same time, the order in which they were asked for
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	if e[i].at != e[j].at {
		return e[i].at < e[j].at
	}
	return e[i].order < e[j].order
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push and Pop are of heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1].do = nil
	*e = (*e)[:len(*e)-1]
	return last
}

// after has something done after a time.
func (c *clock) after(d time.Duration, do func()) {
	c.count++
	heap.Push(&c.events, event{at: c.now + d, order: c.count, do: do})
}

// every has something done now and after each period.
func (c *clock) every(period time.Duration, do func()) {
	var again func()
	again = func() {
		do()
		c.after(period, again)
	}
	c.after(0, again)
}

// step goes on to the next event.
func (c *clock) step() {
	e := heap.Pop(&c.events).(event)
	c.now = e.at
	e.do()
}

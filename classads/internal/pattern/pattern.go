package pattern

import "regexp"

type Flags uint8

const (
	IgnoreCase Flags = 1 << iota
	MultiLine
	DotAll
	Extended
)

type Options uint8

const (
	Anchored Options = 1 << iota
	NotEmptyAtStart
	NotEmpty
)

type Pattern struct{ re *regexp.Regexp }

func Compile(expr string, f Flags) (*Pattern, error) {
	re, err := regexp.Compile(expr)
	return &Pattern{re}, err
}

func (p *Pattern) Match(s string, from int, o Options) ([]int, error) {
	return p.re.FindStringSubmatchIndex(s), nil
}

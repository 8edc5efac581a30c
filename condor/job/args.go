package job

import (
	"fmt"
	"strings"

	"podstarter/classads"
)

// Names of attributes that several files use.
const (
	attrCmd       = "Cmd"
	attrIwd       = "Iwd"
	attrIn        = "In"
	attrOut       = "Out"
	attrErr       = "Err"
	attrClusterID = "ClusterId"
	attrProcID    = "ProcId"
)

// Arguments returns the arguments of the job, without the command itself:
// Arguments in V2 syntax, else Args in V1 syntax, else none
// (condor_utils/condor_arglist.cpp:AppendArgsFromClassAd).
func Arguments(ad *classads.Ad) ([]string, error) {
	if raw, err := ad.GetString("Arguments"); err == nil {
		args, err := SplitV2(raw)
		if err != nil {
			return nil, fmt.Errorf("attribute Arguments: %w", err)
		}
		return args, nil
	}
	args, err := SplitV1(ad.StringOr("Args", ""))
	if err != nil {
		return nil, fmt.Errorf("attribute Args: %w", err)
	}
	return args, nil
}

// The kernel's limit for starting a program: three quarters of 8 MiB for
// arguments and environment, each with its final NUL and a pointer (execve(2),
// "Limits on size of arguments and environment"). Longer texts are not parsed at
// all: a word takes many times the memory of its two bytes in the job's ad.
const (
	mostWords = 6 << 20
	wordCost  = 1 + 8
)

var errTooLong = fmt.Errorf("more than %d bytes, counting %d extra for each word; the kernel starts no program with so many", mostWords, wordCost)

// SplitV1 splits at white space; there is no quoting
// (condor_utils/condor_arglist.cpp:AppendArgsV1Raw_unix).
func SplitV1(raw string) ([]string, error) {
	var words []string
	size := 0
	for word := range strings.FieldsFuncSeq(raw, isSpace) {
		if size += len(word) + wordCost; size > mostWords {
			return nil, errTooLong
		}
		words = append(words, word)
	}
	return words, nil
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }

// SplitV2 splits "V2 raw" text at white space. Single quotes protect white
// space; inside them two stand for one. Quoted and bare parts that touch make
// one word (condor_utils/condor_arglist.cpp:split_args).
func SplitV2(raw string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, size := false, 0
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '\'':
			inWord = true
			n, err := quotedPart(&word, raw[i:])
			if err != nil {
				return nil, err
			}
			i += n - 1
		case isSpace(rune(c)):
			if inWord {
				if size += word.Len() + wordCost; size > mostWords {
					return nil, errTooLong
				}
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// quotedPart reads a part in single quotes and returns its length.
func quotedPart(word *strings.Builder, s string) (int, error) {
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			word.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) || s[i+1] != '\'' {
			return i + 1, nil
		}
		word.WriteByte('\'')
		i++
	}
	return 0, fmt.Errorf("a single quote is not closed: %s", excerpt(s))
}

// JoinV2 is the opposite of SplitV2, in the form that HTCondor prints
// (condor_utils/condor_arglist.cpp:append_arg).
func JoinV2(words []string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		appendV2(&b, word)
	}
	return b.String()
}

func appendV2(b *strings.Builder, word string) {
	if word == "" {
		b.WriteString("''")
		return
	}
	open := false
	for i := 0; i < len(word); i++ {
		c := word[i]
		special := c == '\'' || isSpace(rune(c))
		if special != open {
			b.WriteByte('\'')
			open = special
		}
		if c == '\'' {
			b.WriteByte('\'')
		}
		b.WriteByte(c)
	}
	if open {
		b.WriteByte('\'')
	}
}

// IsV2Quoted says whether a knob's text is in "V2 quoted" syntax, that is,
// begins with a double quote
// (condor_utils/condor_arglist.cpp:IsV2QuotedString).
func IsV2Quoted(s string) bool { return strings.HasPrefix(strings.TrimLeft(s, " \t\n\v\f\r"), `"`) }

// UnquoteV2 takes the double quotes off "V2 quoted" text; inside, two stand
// for one (condor_utils/condor_arglist.cpp:V2QuotedToV2Raw).
func UnquoteV2(quoted string) (string, error) {
	const space = " \t\n\v\f\r"
	s := strings.TrimLeft(quoted, space)
	if s == "" || s[0] != '"' {
		return "", fmt.Errorf("text in double quotes is expected, not %s", excerpt(quoted))
	}
	var raw strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			raw.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			raw.WriteByte('"')
			i++
			continue
		}
		if rest := strings.TrimLeft(s[i+1:], space); rest != "" {
			return "", fmt.Errorf("something follows the closing double quote (inside, write two for one): %s", excerpt(rest))
		}
		return raw.String(), nil
	}
	return "", fmt.Errorf("a double quote is not closed: %s", excerpt(quoted))
}

// excerpt quotes a piece of somebody's text for a message.
func excerpt(s string) string {
	const most = 100
	if len(s) > most {
		return fmt.Sprintf("%q...", s[:most])
	}
	return fmt.Sprintf("%q", s)
}

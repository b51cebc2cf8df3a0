package goexec

import (
	"fmt"
	"regexp"
	"strings"
)

// opens matches what a line of Go can end in the middle of, and what hides it.
var opens = regexp.MustCompile("`|//.*|/\\*|\"(?:\\\\.|[^\"\\\\])*\"?|'(?:\\\\.|[^'\\\\])*'?")

// Text says of each line of a cell whether it begins within a string or a comment, where % and ! mean nothing.
func Text(lines []string) []bool {
	text, end := make([]bool, len(lines)), "" // end is what the string or comment ends with
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if text[i] = end != ""; !text[i] && command.MatchString(line) {
			for i+1 < len(lines) && strings.HasSuffix(lines[i], `\`) {
				i++
			}
			continue
		}
		for {
			if end != "" {
				_, after, found := strings.Cut(line, end)
				if !found {
					break
				}
				line, end = after, ""
			}
			at := opens.FindStringIndex(line)
			if at == nil {
				break
			}
			if end = map[string]string{"`": "`", "/*": "*/"}[line[at[0]:at[1]]]; end == "" && at[1] == len(line) {
				break
			}
			line = line[at[1]:]
		}
	}
	return text
}

var (
	command = regexp.MustCompile(`^(//gonb:)?[%!].`)
	program = regexp.MustCompile(`^(//gonb:)?%(%|main|exec)(\s|$)`)
)

// Refuse returns an error for a cell of which a part would be lost, or that would end the kernel.
func Refuse(lines []string) error {
	began := 0
	for i, text := range Text(lines) {
		switch line := lines[i]; {
		case text:
		case program.MatchString(line) && began > 0:
			return fmt.Errorf("line %d: a cell is one program, and line %d has begun it; leave the second %s out, or split the cell", i+1, began, strings.Fields(line)[0])
		case program.MatchString(line):
			began = i + 1
		case strings.HasPrefix(strings.TrimSpace(line), "//go:embed"):
			return fmt.Errorf("line %d: //go:embed has no effect in a cell; read the file when the cell runs, with os.ReadFile", i+1)
		}
	}
	return nil
}

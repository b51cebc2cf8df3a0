package kernel

import "strings"

// Plain is the text of a cell without the byte order mark and the line ends of Windows.
func Plain(cell string) string {
	return strings.ReplaceAll(strings.TrimPrefix(cell, "\ufeff"), "\r\n", "\n")
}

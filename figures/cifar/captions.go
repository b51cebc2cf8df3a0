package cifar

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed captions.tmpl
var captionText string

var captions = template.Must(template.New("").Parse(captionText))

// caption is the text of a template on one line.
func caption(name string, data any) (string, error) {
	var text strings.Builder
	if err := captions.ExecuteTemplate(&text, name, data); err != nil {
		return "", fmt.Errorf("cifar: the caption %q: %w", name, err)
	}
	return strings.Join(strings.Fields(text.String()), " "), nil
}

package kernel

import "testing"

func TestPlain(t *testing.T) {
	if got := Plain("\ufeffimport \"fmt\"\r\n%%\r\nfmt.Println(\"a\rb\")"); got != "import \"fmt\"\n%%\nfmt.Println(\"a\rb\")" {
		t.Errorf("%q", got)
	}
}

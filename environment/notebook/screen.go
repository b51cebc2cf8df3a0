package notebook

import (
	"fmt"
	"os"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// inNotebook reports whether the program runs as a notebook cell.
func inNotebook() bool { return gonbui.IsNotebook }

// send shows content of one media type, or replaces what was shown before
// under the same id, and waits until the notebook has it.
func send(media protocol.MIMEType, content any, id string) {
	// A broken connection never recovers, and waiting on it would never end.
	stopIfBroken()
	gonbui.SendData(&protocol.DisplayData{
		Data:      map[protocol.MIMEType]any{media: content},
		DisplayID: id,
	})
	stopIfBroken()
	gonbui.Sync()
}

// stopIfBroken stops the cell when the notebook can no longer be reached.
func stopIfBroken() {
	if err := gonbui.Error(); err != nil {
		panic(fmt.Errorf("showing a result in the notebook: %w; restart the kernel and run the cell again", err))
	}
}

// say prints a line to standard output, for programs outside a notebook.
func say(text string) {
	if _, err := fmt.Fprintln(os.Stdout, text); err != nil {
		panic(fmt.Errorf("showing a result: %w", err))
	}
}

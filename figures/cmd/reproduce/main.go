// Reproduce runs the paper's experiments and makes its tables and figures, without a notebook.
//
//	reproduce list                         the tables and figures
//	reproduce list uci-nll                 how many of its runs are stored
//	reproduce run figure1                  the runs that it lacks
//	reproduce table uci-nll --format md    a table from the results
//	reproduce figure figure1 --format svg  a figure from the results
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/tables"
)

// The exit statuses.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2   // the command line is wrong
	exitDiverged    = 3   // all experiments were carried out, and some diverged
	exitRequeue     = 75  // SIGTERM or SIGHUP: what is done is kept, and the same command resumes (EX_TEMPFAIL of sysexits.h)
	exitInterrupted = 130 // as shells report a program that Ctrl-C ended
)

func main() { os.Exit(program(paper())) }

// program is the program with its exhibits.
func program(all tables.Exhibits) int {
	ctx := context.Background()
	if len(os.Args) > 1 && slices.Contains([]string{"run", "again"}, os.Args[1]) { // others have nothing to save
		ctx = untilSignal(ctx)
	}
	return command{stdout: os.Stdout, stderr: os.Stderr, exhibits: all}.main(ctx, os.Args[1:])
}

// untilSignal is a context that Ctrl-C, SIGTERM and, unless nohup has it ignored, SIGHUP end, which a lost connection sends.
func untilSignal(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		s := <-signals
		// A second Ctrl-C ends the program at once. A second SIGTERM does nothing: a cluster may send one to the program
		// and one to the script that passes it on.
		signal.Reset(os.Interrupt)
		cancel(stoppedBy{s})
	}()
	return ctx
}

// stoppedBy is the cause of a context that a signal ended.
type stoppedBy struct{ os.Signal }

func (s stoppedBy) Error() string { return s.String() }

// A command is the program with what it needs from outside.
type command struct {
	stdout, stderr io.Writer
	exhibits       tables.Exhibits
}

// The commands are the command line.
type commands struct {
	List   listCommand   `cmd:"" help:"List the tables and figures; with a name, how many of its runs are stored."`
	Run    runCommand    `cmd:"" help:"Run the experiments of a table or figure that the store lacks. After Ctrl-C the same command resumes. Exit status 3: some diverged."`
	Again  againCommand  `cmd:"" help:"Run or measure stored experiments again, and compare. Nothing is stored."`
	Table  tableCommand  `cmd:"" help:"Print or write a table of the stored results."`
	Figure figureCommand `cmd:"" help:"Write a figure of the stored results."`
}

// A usageError is a command line that makes no sense.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// main carries out the command line and returns the exit status.
func (c command) main(ctx context.Context, args []string) int {
	err := c.parse(ctx, args)
	var wrong usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, train.ErrDiverged) && ctx.Err() == nil:
		c.tell("reproduce: %v", err)
		return exitDiverged
	case errors.As(err, &wrong):
		c.tell("reproduce: %v\nRun \"reproduce --help\" for how to use it.", err)
		return exitUsage
	case ctx.Err() == nil:
		c.tell("reproduce: %v", err)
		return exitFailure
	}
	status := exitRequeue
	if context.Cause(ctx) == (stoppedBy{os.Interrupt}) {
		status = exitInterrupted
	}
	next := "The finished experiments are stored. To resume, run"
	if args[0] == "again" {
		next = "Nothing is stored. To start again, run"
	}
	c.tell("reproduce: stopped: %v\n%s the same command again.", err, next)
	return status
}

// parse reads the command line and carries it out.
func (c command) parse(ctx context.Context, args []string) error {
	helped := false
	parser, err := kong.New(&commands{}, kong.Name("reproduce"), kong.Description("Runs the paper's experiments and makes its tables and figures."),
		kong.Writers(c.stdout, c.stderr), kong.Exit(func(int) { helped = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(c))
	if err != nil {
		return err
	}
	line, err := parser.Parse(args)
	switch {
	case helped:
		return nil
	case err != nil:
		return usageError{err}
	}
	given := map[*kong.Flag]bool{}
	for _, part := range line.Path {
		if part.Flag != nil && given[part.Flag] && !part.Flag.IsCumulative() {
			return usagef("--%s is given twice", part.Flag.Name)
		}
		if part.Flag != nil && part.Flag.Target.Kind() == reflect.String && part.Flag.Target.Len() == 0 {
			return usagef("--%s is empty, as a variable of a shell that is not set; leave it out if this is meant", part.Flag.Name)
		}
		given[part.Flag] = true
	}
	return line.Run()
}

// tell writes a message to standard error. There is nowhere to report that it cannot be written.
func (c command) tell(format string, args ...any) { _, _ = fmt.Fprintf(c.stderr, format+"\n", args...) }

// say writes to standard output, which is an error if it cannot be.
func (c command) say(text string) error {
	_, err := io.WriteString(c.stdout, text)
	return err
}

// storeFlag names the store of a command.
type storeFlag struct {
	Store string `placeholder:"FOLDER" help:"The store of results (default: figures/runs of the checkout)."`
}

// open returns the store and its results. A folder that is not there yet has none.
func (f storeFlag) open() (*experiment.Store, *tables.Index, error) {
	folder := f.Store
	if folder == "" {
		var err error
		if folder, err = tables.DefaultDir(); err != nil {
			return nil, nil, fmt.Errorf("%w with --store", err)
		}
	}
	store := &experiment.Store{Folder: folder}
	index, err := tables.Read(store)
	return store, index, err
}

// read returns the results of the store. The default store may be missing; one that is named must be there.
func (f storeFlag) read() (*tables.Index, error) {
	if f.Store != "" {
		if _, err := os.Stat(f.Store); err != nil {
			return nil, fmt.Errorf("the store: %w", err)
		}
	}
	_, index, err := f.open()
	return index, err
}

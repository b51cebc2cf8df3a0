package main

import (
	"context"
	"fmt"

	"densityuncertainty/figures/runner"
	"densityuncertainty/figures/tables"
)

const gridDoc = `reproduce grid carries out the paper's grid search (section 4): the dropout rate of MC dropout, the noise
variance of variational dropout, and the prior standard deviations of Rank-1 BNN and of density
uncertainty, each model measured on training images of CIFAR-10 that are held out. Then it prints the
table cifar-grid. It takes the flags of "reproduce run"; with --epochs or --train-n it is a cheaper search.

Usage: reproduce grid [flags]
`

func (c command) grid(ctx context.Context, args []string) error {
	r, err := c.request("grid", gridDoc, []string{"grid"}, args)
	if err != nil {
		return err
	}
	if err := c.carryOut(ctx, r); err != nil || r.dry || r.slurm.engine == engineSlurm {
		return err
	}
	lines, err := c.read(paths{r.places.store})
	if err != nil {
		return err
	}
	table, err := tables.CIFARGrid(lines)
	if err != nil {
		return err
	}
	text, err := table.Render(tables.Markdown)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(c.stdout, text); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}

const optionsDoc = `reproduce options lists the options that experiments can set, with their values in the two fidelities:
first those of image experiments, which "reproduce run --set" takes, then those of the toy and UCI.

Usage: reproduce options
`

func (c command) options(_ context.Context, args []string) error {
	positional, err := c.parse(newFlags("options"), optionsDoc, args)
	if err != nil {
		return err
	}
	if len(positional) > 0 {
		return usagef("options takes no %q", positional[0])
	}
	text := "Image experiments:\n\n" + optionsTable(runner.ImageDifferences()) + "\nToy and UCI experiments:\n\n" + optionsTable(runner.Differences())
	if _, err := fmt.Fprint(c.stdout, text); err != nil {
		return fmt.Errorf("printing the options: %w", err)
	}
	return nil
}

package train_test

import (
	"context"
	"fmt"
	"os"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/dul"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
)

// A run with checkpoints is stopped and started again; the second call of Fit
// goes on where the first one stopped.
func ExampleClassification() {
	folder, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }() // scratch: what is left harms nobody
	fit := func(ctx context.Context, progress func(train.ClassificationProgress)) error {
		backend, err := compute.NewWithConfig("go:ops_sequential")
		if err != nil {
			return err
		}
		network := nets.ResNet{Layers: dul.Density{}, Blocks: []int{1}, Widths: []int{2}, Stem: 2}
		classifier, err := nets.NewClassifier(backend, network, 3, 1, dtypes.Float32)
		if err != nil {
			return err
		}
		recipe := train.ResNet14(3) // the paper's, but for
		recipe.Epochs, recipe.BatchSize = 3, 16
		run := recipe.Classification()
		run.Order = shuffled // datasets.Order
		run.Checkpoints = train.Checkpoints{Folder: folder}
		run.Progress = progress
		return run.Fit(ctx, classifier, noiseImages(40, 8, 3))
	}

	ctx, stop := context.WithCancel(context.Background())
	err = fit(ctx, func(p train.ClassificationProgress) {
		if p.Step == 5 {
			stop()
		}
	})
	fmt.Println(err)
	err = fit(context.Background(), func(p train.ClassificationProgress) {
		fmt.Printf("step %d of %d, epoch %d of %d\n", p.Step, p.Steps, p.Epoch, p.Epochs)
	})
	fmt.Println(err)
	// Output:
	// training: stopped after 5 of 12 steps: context canceled
	// step 6 of 12, epoch 2 of 4
	// step 7 of 12, epoch 2 of 4
	// step 8 of 12, epoch 2 of 4
	// step 9 of 12, epoch 3 of 4
	// step 10 of 12, epoch 3 of 4
	// step 11 of 12, epoch 3 of 4
	// step 12 of 12, epoch 4 of 4
	// <nil>
}

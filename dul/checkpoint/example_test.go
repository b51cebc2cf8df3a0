package checkpoint_test

import (
	"fmt"
	"log"
	"os"

	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/checkpoint"
)

// A run that saves every 10 steps, is stopped after 25, and resumes.
func Example() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			log.Print(err)
		}
	}()

	train := func(last int) (err error) {
		f, err := checkpoint.Open(dir, 2)
		if err != nil {
			return err
		}
		defer func() {
			if closeErr := f.Close(); err == nil {
				err = closeErr
			}
		}()

		var progress struct{ Seed uint64 }
		state := checkpoint.State{Store: model.NewStore(), Progress: &progress}
		found, err := f.Restore(state)
		if err != nil {
			return err
		}
		for _, damage := range found.Damaged {
			fmt.Println(damage)
		}
		fmt.Printf("after step %d, seed %d\n", found.Step, progress.Seed)

		progress.Seed = 7
		for step := found.Step + 1; step <= last; step++ {
			// A training step stands here.
			if step%10 == 0 {
				if err := f.Save(step, state); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, last := range []int{25, 50} {
		if err := train(last); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// after step 0, seed 0
	// after step 20, seed 7
}

package datasets_test

import (
	"fmt"

	"densityuncertainty/datasets"
)

// blackAndWhite stands in for what CIFAR10 returns as training images: the first
// half black, the others white.
func blackAndWhite(n int) *datasets.Images {
	m := &datasets.Images{
		Name:    "black and white",
		Classes: []string{"black", "white"},
		Pixels:  make([]byte, n*datasets.ImageSize),
		Labels:  make([]int, n),
		N:       n,
	}
	for i := n / 2; i < n; i++ {
		m.Labels[i] = 1
		for k := range m.Image(i) {
			m.Image(i)[k] = 255
		}
	}
	return m
}

// From images to the examples of an epoch: hold some out, learn the scaling from
// the others, shuffle, draw windows. With the official files at hand the
// first line reads
//
//	images, test, err := datasets.CIFAR10(ctx, nil)
func ExampleImages() {
	images := blackAndWhite(100)
	const seed, epoch = 1, 0

	rows, held := datasets.HoldOut(images.N, 10, seed)
	train, heldOut := images.Take(rows), images.Take(held)
	stats := datasets.FitChannelStats(train, nil)
	augment := datasets.Augmentation{Pad: 4, Flip: true}
	for _, i := range datasets.Order(seed, epoch, train.N) {
		dy, dx, flip := augment.Draw(seed, epoch, i)
		_, _, _ = dy, dx, flip // cut this window out of train.Image(i), and train on it
	}
	fmt.Printf("%d images to train on, %d held out\n", train.N, heldOut.N)
	fmt.Printf("mean %.3f, standard deviation %.3f\n", stats.Mean[0], stats.Std[0])
	// Output:
	// 90 images to train on, 10 held out
	// mean 0.489, standard deviation 0.500
}

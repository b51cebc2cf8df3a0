package datasets

import "math"

// ChannelStats standardises images channel by channel: z = (v/255 - Mean) / Std
// for a pixel value v. The order is red, green, blue. Mean and Std are on the
// scale of v/255, from 0 to 1.
type ChannelStats struct {
	Mean, Std [ImageChannels]float64
}

// FitChannelStats computes the mean and the population standard deviation of each
// channel's v/255, over all pixels of the given images; nil rows means all
// images. Passing the rows to train on keeps others out of the scaling.
//
// A channel that is constant over these images gets Std 1, as in [FitScaler].
//
// FitChannelStats panics if there is no image or a row is not in [0, N).
func FitChannelStats(m *Images, rows []int) ChannelStats {
	if rows == nil {
		rows = ascending(m.N)
	}
	if len(rows) == 0 {
		panic("datasets: FitChannelStats: no images to fit on")
	}
	// Counting how often each value occurs makes the sums exact and short.
	// Neighbours mostly have the same value; taking turns among four counters lets
	// the processor count them at the same time.
	var counts [ImageChannels][4][256]int64
	for _, i := range rows {
		m.check(i)
		image := m.Image(i)
		for c := range counts {
			pixels, turns := channel(image, c), &counts[c]
			for at := 0; at < len(pixels); at += 4 {
				turns[0][pixels[at]]++
				turns[1][pixels[at+1]]++
				turns[2][pixels[at+2]]++
				turns[3][pixels[at+3]]++
			}
		}
	}
	var s ChannelStats
	for c := range counts {
		s.Mean[c], s.Std[c] = valueMoments(&counts[c])
	}
	return s
}

// valueMoments returns mean and population standard deviation of v/255, where
// value v occurs counts[v] times.
func valueMoments(turns *[4][256]int64) (mean, std float64) {
	var counts [256]int64
	var n, sum int64
	for v := range counts {
		count := turns[0][v] + turns[1][v] + turns[2][v] + turns[3][v]
		counts[v] = count
		n += count
		sum += int64(v) * count
	}
	mean = float64(sum) / float64(n)
	var squares float64
	for v, count := range counts {
		dev := float64(v) - mean
		squares += dev * dev * float64(count)
	}
	std = math.Sqrt(squares/float64(n)) / 255
	if std == 0 {
		std = 1
	}
	return mean / 255, std
}

// ReleasedChannelStats are the values of the authors' released code, which uses
// them for CIFAR-10 and CIFAR-100 alike. The means are those of CIFAR-10's training
// part. The standard deviations are about a fifth smaller than those of its pixels:
// they are the mean over its images of the (unbiased) standard deviation within an
// image.
func ReleasedChannelStats() ChannelStats {
	return ChannelStats{
		Mean: [ImageChannels]float64{0.4914, 0.4822, 0.4465},
		Std:  [ImageChannels]float64{0.2023, 0.1994, 0.2010},
	}
}

// channel returns channel c of an image.
func channel(image []byte, c int) []byte {
	return image[c*ImageSide*ImageSide : (c+1)*ImageSide*ImageSide]
}

// ascending returns 0, ..., n-1.
func ascending(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

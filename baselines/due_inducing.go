package baselines

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"gonum.org/v1/gonum/floats"
)

// Inducing is where the inducing points of DUE start.
type Inducing struct {
	Points      []float64 // M of them, row-major
	LengthScale float64
}

// StartFrom makes the start of DUE from features, row-major with width columns,
// of the untrained network at training inputs, about a thousand of them: count
// inducing points by KMeans, and as length scale the mean distance of two
// features, as the authors' code does. Initial values depend on seed and path
// alone, so that the features can come of another model of the same seed, whose
// network is Headless (predict.Features, predict.ImageFeatures).
func StartFrom(features []float64, width, count int, seed uint64) (Inducing, error) {
	points, err := KMeans(features, width, count, seed)
	if err != nil {
		return Inducing{}, fmt.Errorf("inducing points: %w", err)
	}
	n := min(len(features)/width, 1000)
	sum := 0.0
	for i := range n {
		for j := range i {
			sum += math.Sqrt(squaredDistance(features[i*width:(i+1)*width], features[j*width:(j+1)*width]))
		}
	}
	if !(sum > 0) {
		return Inducing{}, fmt.Errorf("inducing points: all of the first %d features are equal, or some are no numbers; the network cannot tell its inputs apart", n)
	}
	return Inducing{Points: points, LengthScale: sum / float64(n*(n-1)/2)}, nil
}

// KMeans returns count centres of points, row-major with width columns: the
// seeds of k-means++ (Arthur & Vassilvitskii 2007), then Lloyd's iterations until
// no point changes its centre, at most 100. A centre that loses all its points
// moves to the point that is farthest from its own.
func KMeans(points []float64, width, count int, seed uint64) ([]float64, error) {
	if width < 1 || len(points)%width != 0 {
		return nil, fmt.Errorf("k-means: %d coordinates are not a whole number of points of %d", len(points), width)
	}
	n := len(points) / width
	if count < 1 || count > n {
		return nil, fmt.Errorf("k-means: %d centres of %d points; want at least 1, and no more than points", count, n)
	}
	c := clustering{points: points, width: width, owner: make([]int, n), distance: make([]float64, n)}
	c.seed(count, rand.New(rand.NewPCG(seed, 0x6b6d65616e73)))
	for range 100 {
		c.move()
		if !c.assign() {
			break
		}
	}
	return c.centres, nil
}

// A clustering is the state of KMeans.
type clustering struct {
	points, centres []float64
	width           int
	owner           []int     // the nearest centre of each point
	distance        []float64 // and the square of its distance
}

func (c *clustering) point(i int) []float64  { return c.points[i*c.width : (i+1)*c.width] }
func (c *clustering) centre(k int) []float64 { return c.centres[k*c.width : (k+1)*c.width] }

// seed chooses each centre among the points with probabilities in proportion to
// the squares of their distances from those before.
func (c *clustering) seed(count int, rng *rand.Rand) {
	n := len(c.owner)
	c.centres = slices.Clone(c.point(rng.IntN(n)))
	c.assign()
	for len(c.centres) < count*c.width {
		at := rng.Float64() * floats.Sum(c.distance)
		chosen := n - 1
		for i, d := range c.distance {
			if at -= d; at < 0 {
				chosen = i
				break
			}
		}
		c.centres = append(c.centres, c.point(chosen)...)
		c.assign()
	}
}

// assign gives each point its nearest centre, and says whether one has changed.
func (c *clustering) assign() (changed bool) {
	for i := range c.owner {
		before := c.owner[i]
		c.distance[i] = math.Inf(1)
		for k := range len(c.centres) / c.width {
			if d := squaredDistance(c.point(i), c.centre(k)); d < c.distance[i] {
				c.owner[i], c.distance[i] = k, d
			}
		}
		changed = changed || c.owner[i] != before
	}
	return changed
}

// move puts each centre at the mean of its points.
func (c *clustering) move() {
	sizes := make([]float64, len(c.centres)/c.width)
	clear(c.centres)
	for i, k := range c.owner {
		sizes[k]++
		floats.Add(c.centre(k), c.point(i))
	}
	for k, size := range sizes {
		if size > 0 {
			floats.Scale(1/size, c.centre(k))
			continue
		}
		farthest := floats.MaxIdx(c.distance)
		copy(c.centre(k), c.point(farthest))
		c.distance[farthest] = 0
	}
}

func squaredDistance(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += (v - b[i]) * (v - b[i])
	}
	return sum
}

// A DUESize is what the memory that DUE's head takes depends on.
type DUESize struct {
	Classes, Inducing, Batch, Width int
	Samples                         int // 0 means 32
	DType                           dtypes.DType
}

// Bytes is the memory of all that a training step computes for the head and its
// gradient, with nothing freed before the end: an upper bound, of which a
// backend needs less. For K classes, M inducing points, n examples of d features
// and S samples it is, in numbers of so many bytes,
//
//	K M (180 M + 70 n) + (M + n) (40 d + 50 M) + 72 S n K.
//
// For WRN-28-10 (640 features) and batches of 128 that is 31 MB with the 10
// classes and 10 inducing points of CIFAR-10, and 1220 MB with the 100 and 100 of
// CIFAR-100, where the paper reports that DUE ran out of memory. Covariances
// between classes and examples as one matrix would take DenseBytes, 655 MB, for
// each copy; the likelihood needs the variances alone.
func (z DUESize) Bytes() int {
	k, m, n, d := z.Classes, z.Inducing, z.Batch, z.Width
	numbers := k*m*(180*m+70*n) + (m+n)*(40*d+50*m) + 72*orDefaultInt(z.Samples, 32)*n*k
	return numbers * z.DType.Size()
}

// DenseBytes is the size of one covariance matrix of all classes and examples.
func (z DUESize) DenseBytes() int {
	side := z.Batch * z.Classes
	return side * side * z.DType.Size()
}

// MostInducing is the largest number of inducing points, up to z.Inducing, whose
// Bytes are within the limit. There is an error where one is too many.
func (z DUESize) MostInducing(limit int) (int, error) {
	for ; z.Inducing > 0; z.Inducing-- {
		if z.Bytes() <= limit {
			return z.Inducing, nil
		}
	}
	z.Inducing = 1
	return 0, fmt.Errorf("DUE with a single inducing point takes up to %d bytes, of which there are %d; make the batch smaller", z.Bytes(), limit)
}

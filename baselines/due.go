package baselines

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// DUE is deterministic uncertainty estimation (van Amersfoort et al. 2021). The hidden layers are SpectralNormed. The
// head is a sparse variational Gaussian process on their features h (Titsias 2009; Hensman et al. 2015). With M
// inducing points Z, and L the Cholesky factor of the kernel matrix K(Z, Z),
//
//	k(a, b) = o exp(-|a - b|^2 / (2 l^2)),
//	q(v) = N(m, S S^T),   p(v) = N(0, I),   f(Z) = c + L v,
//	a(h) = L^-1 K(Z, h),
//	q(f(h)) = N(c + a^T m,  k(h, h) - a^T a + |S^T a|^2).
//
// Each class has its own process, with its own m, S, constant mean c, length scale l and output scale o; all share the
// inducing points, as in the authors' code. The objective is the mean of -log p(y | f(h)) over q plus KL(q(v) || p(v))
// / N. All parameters of the head have the role Variational, without weight decay, because the bound regularises them.
//
// DUE is a nets.Process: give it to nets.MLP.Over or another Architecture, and train.Trainer does the rest. The inducing points
// start as the k-means centres of the features of the untrained network, and the length scale as the mean distance of two
// features, as in the authors' code. Before a training, predictions need Start.
//
// A training returns FailedReplicas if K(Z, Z) had no Cholesky factor at some step; the error wraps
// linalg.ErrNotPositiveDefinite.
type DUE struct {
	Hidden SpectralNormed
	// Inducing is the number M of inducing points, at least 1; leave it out with Start.
	Inducing int
	// Start, if not nil, has the initial inducing points of each replica, or one element for all replicas.
	Start []Inducing
	// Jitter times the output scale is added to the diagonal of K(Z, Z); 0 means 1e-4 in single and 1e-6 in double
	// precision.
	Jitter float64
}

// Dense is SpectralNormed.Dense.
func (l DUE) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return below(x.Graph(), l.Hidden).Dense(s, x, units)
}

// Conv is SpectralNormed.Conv.
func (l DUE) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	return below(x.Graph(), l.Hidden).Conv(s, x, c)
}

// Norm is SpectralNormed.Norm.
func (l DUE) Norm(s *model.Scope, x *graph.Node) *graph.Node { return l.Hidden.Norm(s, x) }

// Head is the Gaussian process, for h of [..., n, width] and K = units processes. It adds the KL. For a regression it returns a
// draw of f, [..., n, K]. For classes, in training, it returns 32 draws, [32, n, K], over which likelihood.Categorical
// averages the cross-entropy. For classes, in evaluation, it returns the logarithm of the predictive distribution, log
// mean_s softmax(f_s), [n, K]. The authors' code also uses 32 draws to score images, but trains with 10, GPyTorch's
// default. Classes have no replicas; Head panics with them.
//
// A Dempster-Shafer score of these logits says nothing, because their exponentials always sum to one. Use the
// predictive entropy.
func (l DUE) Head(s *model.Scope, x *graph.Node, units int) *graph.Node {
	p, facts := l.process(s, x, units), params.FactsOf(x.Graph())
	facts.Finish = func(...float64) error { return checkPivots(s.Store(), s.Scope()) }
	stochastic.LayerLossesOf(x.Graph()).AddKL(p.kl())
	mean, variance := p.moments()
	n := x.Shape().Dim(-2)
	if !facts.Classes {
		return graph.Add(mean, graph.Mul(graph.Sqrt(variance), stochastic.Draw(s, x, stochastic.Gaussian(), n, units)))
	}
	if x.Rank() != 2 {
		panic(fmt.Errorf("DUE with classes and replicas: features of shape %s; want [n, width]", x.Shape()))
	}
	const samples = 32
	eps := graph.Reshape(stochastic.Draw(s, x, stochastic.Gaussian(), samples, n*units), samples, n, units)
	f := graph.Add(graph.ExpandAxes(mean, 0), graph.Mul(graph.ExpandAxes(graph.Sqrt(variance), 0), eps))
	if s.Store().IsTraining(x.Graph()) {
		return f
	}
	logs := graph.Reshape(graph.Sub(f, ops.LogSumExp(f)), samples, n*units)
	logMean := graph.AddScalar(ops.LogSumExp(graph.Transpose(logs, 0, 1)), -math.Log(float64(samples)))
	return graph.Reshape(logMean, n, units)
}

// Moments returns the mean and the variance of f, [..., n, units] each.
func (l DUE) Moments(s *model.Scope, x *graph.Node, units int) (mean, variance *graph.Node) {
	return l.process(s, x, units).moments()
}

// failedSteps is the variable that checkPivots reads.
const failedSteps = "failed_steps"

// A sparseProcess is the K processes of a head at its inputs x, with matrices
// [..., K, rows, columns].
type sparseProcess struct {
	x                   *graph.Node // [..., n, width]
	points              *graph.Node // Z, [..., M, width]
	constant            *graph.Node // c, [..., K, 1, 1]
	mean                *graph.Node // m, [..., K, M, 1]
	factor, logDiagonal *graph.Node // S, [..., K, M, M], and the logarithms of its diagonal, [..., K, M, 1]
	outputScale         *graph.Node // k(h, h), [..., K, 1, 1]
	kernel              func(a, b *graph.Node) *graph.Node
	root                *linalg.Factor // of K(Z, Z) with jitter
}

// process makes the head's parameters, and the factor of K(Z, Z).
func (l DUE) process(s *model.Scope, x *graph.Node, units int) sparseProcess {
	width := x.Shape().Dim(-1)
	count := l.inducing(width, x.Shape().Size()/(x.Shape().Dim(-2)*width))
	starts := sync.OnceValue(func() []Inducing { return l.starts(s.Store(), params.FactsOf(x.Graph()), width) })
	of := func(name string, start float64, dims ...int) *graph.Node {
		return params.New(s, x, name, params.Variational, params.Constant(start), append([]int{units}, dims...)...)
	}
	lengthScales := params.New(s, x, "log_length_scale", params.Variational, eachReplica(starts, func(z Inducing) []float64 {
		return slices.Repeat([]float64{math.Log(z.LengthScale)}, units)
	}), units, 1, 1)
	p := sparseProcess{
		x: x,
		points: params.New(s, x, "inducing_points", params.Variational,
			eachReplica(starts, func(z Inducing) []float64 { return z.Points }), count, width),
		constant:    of("constant_mean", 0, 1, 1),
		mean:        of("variational_mean", 0, count, 1),
		outputScale: ops.Exp(of("log_output_scale", math.Log(math.Ln2), 1, 1)), // that of GPyTorch
	}
	// Below the diagonal the entries of S, on it their logarithms.
	raw := of("variational_factor", 0, count, count)
	p.logDiagonal = linalg.Diagonal(raw)
	p.factor = graph.Add(graph.TakeLowerTriangular(raw, -1), graph.Mul(ops.Exp(p.logDiagonal), linalg.Identity(raw)))

	// r^2, without the length scale, of all processes.
	perProcess := func(squares *graph.Node) *graph.Node { return graph.ExpandAxes(squares, -3) }
	p.kernel = func(a, b *graph.Node) *graph.Node {
		squares := squaredDistances(a, b)
		if a == b { // no rounding, and no gradient, on the diagonal
			squares = graph.Mul(squares, graph.OneMinus(linalg.Identity(squares)))
		}
		scaled := graph.Mul(perProcess(squares), ops.Exp(graph.MulScalar(lengthScales, -2)))
		return graph.Mul(ops.Exp(graph.MulScalar(scaled, -0.5)), p.outputScale)
	}
	k := p.kernel(p.points, p.points)
	jitter := graph.Mul(linalg.Identity(k), graph.MulScalar(p.outputScale, l.jitter(x.DType())))
	p.root = linalg.Cholesky(graph.Add(k, jitter))
	l.note(s, x, p.root.LeastPivot)
	return p
}

// moments are those of q(f(x)), [..., n, K].
func (p sparseProcess) moments() (mean, variance *graph.Node) {
	a := p.root.SolveLower(p.kernel(p.points, p.x)) // [..., K, M, n]
	spread := ops.TransposedProduct(p.factor, a)
	rows := graph.Add(ops.TransposedProduct(p.mean, a), p.constant) // [..., K, 1, n]
	squares := graph.Sub(ops.SumRows(graph.Mul(spread, spread)), ops.SumRows(graph.Mul(a, a)))
	variance = ops.AtLeast(graph.Add(squares, p.outputScale), 1e-10)
	columns := func(x *graph.Node) *graph.Node { // [..., K, 1, n] -> [..., n, K]
		return graph.Transpose(graph.Squeeze(x, -2), -2, -1)
	}
	return columns(rows), columns(variance)
}

// kl is KL(N(m, S S^T) || N(0, I)), added up over the processes, [..., 1, 1]:
//
//	1/2 [ |m|^2 + |S|_F^2 - M ] - sum_i log S_ii.
func (p sparseProcess) kl() *graph.Node {
	count := p.mean.Shape().Dim(-2)
	total := func(x *graph.Node) *graph.Node { return ops.SumRows(ops.SumColumns(x)) }
	squares := graph.AddScalar(graph.Add(total(graph.Mul(p.mean, p.mean)), total(graph.Mul(p.factor, p.factor))), -float64(count))
	each := graph.Sub(graph.MulScalar(squares, 0.5), total(p.logDiagonal)) // [..., K, 1, 1]
	return ops.SumRows(graph.Squeeze(each, -1))
}

// squaredDistances are |a_i - b_j|^2 of rows, [..., n, d] and [..., m, d] -> [..., n, m].
func squaredDistances(a, b *graph.Node) *graph.Node {
	// Distances stay as they are when all is moved; near the origin they are rounded less.
	centre := graph.StopGradient(graph.MulScalar(ops.SumRows(a), 1/float64(a.Shape().Dim(-2))))
	minusCentre := graph.Neg(centre)
	a, b = graph.Add(a, minusCentre), graph.Add(b, minusCentre)
	squares := func(x *graph.Node) *graph.Node { return ops.SumColumns(graph.Mul(x, x)) }
	cross := graph.MulScalar(ops.ProductTransposed(a, b), -2)
	return ops.AtLeast(graph.Add(graph.Add(cross, squares(a)), graph.Transpose(squares(b), -2, -1)), 0)
}

func (l DUE) jitter(dtype dtypes.DType) float64 {
	usual := 1e-4
	if dtype == dtypes.Float64 {
		usual = 1e-6
	}
	return setting("baselines.DUE.Jitter", l.Jitter, usual)
}

// LeastExamples returns the least number of training examples, which is Inducing.
func (l DUE) LeastExamples() int { return l.Inducing }

// inducing is the number M of inducing points.
func (l DUE) inducing(width, replicas int) int {
	if l.Start == nil {
		if l.Inducing < 1 {
			panic(fmt.Errorf("baselines.DUE has %d inducing points; at least 1 is needed", l.Inducing))
		}
		return l.Inducing
	}
	if len(l.Start) != 1 && len(l.Start) != replicas || l.Inducing != 0 {
		panic(fmt.Errorf("DUE.Start has %d starts for %d replicas, and DUE.Inducing is %d; want one start of each, or one for all, and Inducing left out", len(l.Start), replicas, l.Inducing))
	}
	count := len(l.Start[0].Points) / width
	for r, z := range l.Start {
		if len(z.Points) != count*width || count == 0 {
			panic(fmt.Errorf("DUE.Start[%d] has %d coordinates; want %d inducing points of %d features", r, len(z.Points), count, width))
		}
		if !(z.LengthScale > 0) || math.IsInf(z.LengthScale, 1) {
			panic(fmt.Errorf("DUE.Start[%d] has the length scale %g; it must be positive and finite", r, z.LengthScale))
		}
	}
	return count
}

// starts returns Start or, if it is nil, starts from the features of the untrained network.
func (l DUE) starts(store *model.Store, facts *params.Facts, width int) []Inducing {
	if l.Start != nil {
		return l.Start
	}
	if facts.Features == nil {
		panic(errors.New("baselines.DUE has no inducing points yet: train the model by train.Trainer, or set DUE.Start"))
	}
	features, err := facts.Features(width)
	if err != nil {
		panic(err)
	}
	all := make([]Inducing, len(features))
	for i, seed := range params.Seeds(store) {
		if all[i], err = startFrom(features[i], width, l.Inducing, seed); err != nil {
			panic(err)
		}
	}
	return all
}

// eachReplica initialises the replicas in order, each from its start.
func eachReplica(starts func() []Inducing, of func(Inducing) []float64) params.Initializer {
	next := 0
	return func(_ *rand.Rand, _ []int, values []float64) {
		copy(values, of(starts()[next%len(starts())]))
		next++
	}
}

// note counts the training steps at which a pivot was not positive, for checkPivots.
func (l DUE) note(s *model.Scope, x, pivots *graph.Node) {
	count := params.Statistic(s.In(params.TrainingSums), x, failedSteps, params.Constant(0), 1, 1)
	if s.Store().IsTraining(x.Graph()) {
		failed := graph.Where(graph.GreaterThan(pivots, graph.ZerosLike(pivots)), graph.ZerosLike(pivots), graph.OnesLike(pivots)) // 1 for NaN
		count.SetNodeValue(graph.Add(count.NodeValue(x), graph.Reshape(graph.ReduceMax(failed, -3, -2, -1), count.Shape().Dimensions...)))
	}
}

// checkPivots returns FailedReplicas if K(Z, Z) of the head in the given scope had no Cholesky factor at some step of this training.
func checkPivots(store *model.Store, head string) error {
	counts, _, err := params.Values(store, model.JoinPath(head, params.TrainingSums, failedSteps))
	if err != nil {
		return fmt.Errorf("DUE: %w", err)
	}
	failed := make(FailedReplicas)
	for r, steps := range counts {
		if steps > 0 {
			failed[r] = fmt.Errorf("DUE: the kernel matrix of the inducing points, at %g steps: %w", steps, linalg.ErrNotPositiveDefinite)
		}
	}
	return failed.asError()
}

// Inducing is the initial state of DUE's inducing points.
type Inducing struct {
	Points      []float64 // [M, width] row-major
	LengthScale float64
}

// startFrom returns count inducing points and a length scale for the features of an untrained network, row-major with width
// columns. It is an error if features are NaN, infinite or all equal, or fewer than count.
func startFrom(features []float64, width, count int, seed uint64) (Inducing, error) {
	if i := params.NotFinite(features); i >= 0 {
		return Inducing{}, fmt.Errorf("inducing points: feature %d of %d is %g; has the network diverged, or have inputs no value?", i, len(features), features[i])
	}
	points, err := kMeans(features, width, count, seed)
	if err != nil {
		return Inducing{}, fmt.Errorf("inducing points: %w", err)
	}
	n := min(len(features)/width, 1000)
	if n < 2 {
		return Inducing{}, errors.New("inducing points: the features are those of one input, which has no distance from others; give about a thousand inputs")
	}
	sum := 0.0
	for i := range n {
		for j := range i {
			sum += math.Sqrt(squaredDistance(features[i*width:(i+1)*width], features[j*width:(j+1)*width]))
		}
	}
	if !(sum > 0) {
		return Inducing{}, fmt.Errorf("inducing points: all of the first %d features are equal, or closer than 1e-160; the network cannot tell its inputs apart", n)
	}
	return Inducing{Points: points, LengthScale: sum / float64(n*(n-1)/2)}, nil
}

// kMeans returns count centres of points, row-major with width columns: the
// seeds of k-means++ (Arthur & Vassilvitskii 2007), then Lloyd's iterations until
// no point changes its centre, at most 100. A centre that loses all its points
// moves to the point that is farthest from its own.
func kMeans(points []float64, width, count int, seed uint64) ([]float64, error) {
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

// A clustering is the state of kMeans.
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

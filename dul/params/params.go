// Package params creates the parameters of layers. Each parameter has a role, by which optimizers group parameters, and
// an initial value that depends only on the seed and the parameter's path.
package params

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/ops"
)

// Role says what a parameter is for.
type Role string

const (
	// Weight is a deterministic weight or bias, trained by the likelihood and with weight decay.
	Weight Role = "weight"
	// Variational is a mean or log-variance of an approximate posterior. The KL divergence regularises it, so it needs
	// no weight decay.
	Variational Role = "variational"
	// Generative is a parameter omega of an energy model, trained by the generative objective sum_i log p_energy(h_i;
	// omega). Weight decay stands for the paper's log p(omega).
	Generative Role = "generative"
	// Likelihood is a parameter of the observation model, such as the log
	// noise variance of a regression.
	Likelihood Role = "likelihood"
	// Running is a statistic that a layer updates itself, without an optimizer.
	Running Role = "running"
	// loaded marks a variable that was read from a file (checkpoint.SetTensors) and that
	// no graph has used yet.
	loaded Role = "loaded"
)

// New returns the parameter s/name, [replicas..., dims...], and creates it with its role and initial value on first
// use. like is an activation of the layer, [batch, features] or [replicas, batch, features], whose graph, type and
// replicas the parameter gets. New panics if like or the existing parameter has another shape.
func New(s *model.Scope, like *graph.Node, name string, role Role, initial Initializer, dims ...int) *graph.Node {
	return variable(s, like, name, role, initial, dims...).NodeValue(like)
}

// variable makes the variable with its value: XLA would write the constants of a graph that computes it as text.
func variable(s *model.Scope, like *graph.Node, name string, role Role, initial Initializer, dims ...int) *model.Variable {
	lead, path, store := leadOf(s, like, name), model.JoinPath(s.Scope(), name), s.Store()
	if slices.ContainsFunc(dims, func(n int) bool { return n < 1 }) {
		panic(fmt.Errorf("parameter %s would have the shape %v; a layer needs at least one feature or channel, and at least one unit or filter", path, dims))
	}
	shape := shapes.Make(like.DType(), slices.Concat(lead, dims)...)
	_, loaded := store.GetParam(loadedKey)
	switch v := store.GetVariable(path); {
	case v == nil && loaded:
		panic(notInFile(path))
	case v == nil && !HasNoValues(store):
		store.VariableWithValue(path, initialTensor(store, path, shape, len(lead) > 0, initial))
	case v != nil && !v.Shape().Equal(shape):
		panic(fmt.Errorf("variable %s is %s in the model and would be %s here: the inputs have another number of features than those of its first use, or the network or Model.DType is another one", path, v.Shape(), shape))
	}
	v := s.WithInitializer(graph.Zeros).VariableWithShape(name, shape) // checks the shape of one that is there
	store.SetParam(roleKey(path), string(role))
	Input(store, v, like)
	return v
}

// Input returns the value of v, a variable of the store, in the graph of like. Use it for a variable that changes
// between executions of a graph without training: the pure Go backend would otherwise compile the present value as a
// constant. New and Statistic call it themselves.
func Input(store *model.Store, v *model.Variable, like graph.GraphProvider) *graph.Node {
	g := like.Graph()
	training := store.IsTraining(g)
	// In a graph that trains, a variable that is read for the first time becomes an input.
	store.SetTraining(g, true)
	defer store.SetTraining(g, training)
	return v.NodeValue(g)
}

// leadOf returns the leading axes of a parameter, which are the replicas of the
// graph, and panics where the activation has other axes before its last two.
func leadOf(s *model.Scope, like *graph.Node, name string) []int {
	replicas := FactsOf(like.Graph()).Replicas
	if like.Rank() != len(replicas)+2 || !slices.Equal(like.Shape().Dimensions[:len(replicas)], replicas) {
		want := "[batch, features]"
		if len(replicas) > 0 {
			want = fmt.Sprintf("[%d replicas, batch, features]", replicas[0])
		}
		panic(fmt.Errorf("parameter %s was asked for activations of shape %s, where this model has %s: for a parameter of your own give a node of that shape, such as graph.ReduceMean(x, 1) of [batch, positions, features]; a layer that is to act at each position of longer shapes needs nets.Positions, which nets.Func applies by itself; a graph of replicas needs params.Facts.Replicas, which models of nets.NewReplicas set",
			model.JoinPath(s.Scope(), name), like.Shape(), want))
	}
	return replicas
}

const withoutValuesKey = "/parameters_without_values"

const loadedKey = "/parameters_loaded"

// SetLoaded records that the store's variable at path was read from a file before any graph used it. From then on New
// and Statistic create no variables, and panic if the file lacks one.
func SetLoaded(store *model.Store, path string) {
	store.SetParam(loadedKey, true)
	store.SetParam(roleKey(path), string(loaded))
}

// CheckLoaded returns an error if the variables that a file set below the scope s are not those that the graph g uses.
// Call it when the network is built.
func CheckLoaded(s *model.Scope, g *graph.Graph) error {
	store := s.Store()
	if _, loaded := store.GetParam(loadedKey); !loaded {
		return nil
	}
	used := map[*graph.Node]bool{}
	for _, node := range g.Nodes() {
		for _, input := range node.Inputs() {
			used[input] = true
		}
	}
	for v := range s.IterVariables() {
		switch role, found := store.GetParam(roleKey(v.Path())); {
		case !found:
			return notInFile(v.Path())
		case role != string(loaded):
		case v.InUseByGraph(g) && used[v.NodeValue(g)]: // by a layer of GoMLX's own
			store.SetParam(roleKey(v.Path()), "")
		default:
			return fmt.Errorf("the file that the model was loaded from has variable %s, the model has not: it is the file of another model", v.Path())
		}
	}
	return nil
}

func notInFile(path string) error {
	return fmt.Errorf("the model has variable %s, the file that it was loaded from has not: it is the file of another model", path)
}

// WithoutValues makes all new parameters of the store zero. Use it for graphs that are built for their shapes and never
// executed, since drawing the initial values of a large network takes seconds.
func WithoutValues(store *model.Store) { store.SetParam(withoutValuesKey, true) }

// HasNoValues says whether WithoutValues was called.
func HasNoValues(store *model.Store) bool {
	_, without := store.GetParam(withoutValuesKey)
	return without
}

// Statistic returns the variable s/name, [replicas..., dims...], that a layer updates itself, such as a running mean.
// It has the role Running: it belongs to the model, but no optimizer trains it.
func Statistic(s *model.Scope, like *graph.Node, name string, initial Initializer, dims ...int) *model.Variable {
	return variable(s, like, name, Running, initial, dims...).SetTrainable(false)
}

// Set gives the store's variable at path, such as "/model/output/weights", the value, its shape and its type. If there is
// no such variable, Set creates one without a role.
func Set(store *model.Store, path string, value *tensors.Tensor) (*model.Variable, error) {
	v := store.GetVariable(path)
	if v == nil {
		return store.VariableWithValue(path, value), nil
	}
	if err := v.SetValue(value); err != nil {
		return nil, fmt.Errorf("setting variable %s: %w", path, err)
	}
	return v, nil
}

// SetStatistic is Set for a Statistic that is computed outside of graphs.
func SetStatistic(store *model.Store, path string, value *tensors.Tensor) error {
	v, err := Set(store, path, value)
	if err != nil {
		return err
	}
	v.SetTrainable(false)
	store.SetParam(roleKey(path), string(Running))
	return nil
}

// Follow moves a Statistic, in the graph of a training step, a tenth of the way to its value in the batch: running =
// 0.9 running + 0.1 batch. No gradient flows.
func Follow(running *model.Variable, batch *graph.Node) {
	const momentum = 0.1
	old := running.NodeValue(batch.Graph())
	running.SetNodeValue(graph.Add(graph.MulScalar(old, 1-momentum), graph.MulScalar(graph.StopGradient(batch), momentum)))
}

// roleKey is where the store remembers a parameter's role; the path's
// separators are escaped so that every role lives in one scope of its own.
func roleKey(path string) string {
	return model.JoinPath("/parameter_roles", strings.ReplaceAll(path, model.ScopeSeparator, "|"))
}

// modelScope is the scope of a model's variables, see nets.Model.Scope.
const modelScope = "/model/"

// Raw returns the paths of the variables below the scope s that neither this package nor a file created, such as those
// of GoMLX's layers.
func Raw(s *model.Scope) (paths []string) {
	for v := range s.IterVariables() {
		if role, found := s.Store().GetParam(roleKey(v.Path())); !found || role == "" {
			paths = append(paths, v.Path())
		}
	}
	return paths
}

// RoleOf returns the role of a variable made by New or Statistic. Other variables of a model, such as those of GoMLX's
// layers, are Weight if trainable, else Running. The role is "" for variables outside a model and for those that are
// not floating-point.
func RoleOf(v *model.Variable, store *model.Store) Role {
	role, found := store.GetParam(roleKey(v.Path()))
	switch {
	case found && role != "":
		return Role(role.(string))
	case !strings.HasPrefix(v.Path(), modelScope) || !v.DType().IsFloat():
		return ""
	case v.Trainable:
		return Weight
	}
	return Running
}

const seedsKey = "/parameter_seeds"

// SetSeeds sets the seeds of all parameters that are created in the store from now on: one for each replica, or a
// single one. A replica has the initial values of a model with its seed alone.
func SetSeeds(store *model.Store, seeds ...uint64) {
	texts := make([]string, len(seeds))
	for i, seed := range seeds {
		texts[i] = fmt.Sprint(seed)
	}
	store.SetParam(seedsKey, strings.Join(texts, " "))
}

// seedsOf returns the store's seeds; a store without any gets a random one,
// which it keeps.
func seedsOf(store *model.Store) []uint64 {
	if seeds := Seeds(store); seeds != nil {
		return seeds
	}
	SetSeeds(store, rand.Uint64())
	return Seeds(store)
}

// Seeds returns the seeds of the store's parameters: what SetSeeds set, or else the random seed that the first parameter
// drew; nil before.
func Seeds(store *model.Store) []uint64 {
	value, found := store.GetParam(seedsKey)
	if !found {
		return nil
	}
	var seeds []uint64
	for _, text := range strings.Fields(value.(string)) {
		var seed uint64
		if _, err := fmt.Sscan(text, &seed); err != nil {
			panic(fmt.Errorf("parameter seed %q is not a number: %w", text, err))
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// initialTensor draws the initial value of one parameter, for every replica from its seed and the parameter's path.
func initialTensor(store *model.Store, path string, shape shapes.Shape, replicated bool, initial Initializer) *tensors.Tensor {
	seeds, dims, replicas := seedsOf(store), shape.Dimensions, 1
	if replicated {
		replicas, dims = dims[0], dims[1:]
	}
	if len(seeds) != replicas && len(seeds) != 1 {
		panic(fmt.Errorf("parameter %s has %d replicas, but SetSeeds was given %d seeds", path, replicas, len(seeds)))
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(path)) // fnv's Write never fails.
	values := make([]float64, shape.Size())
	size := len(values) / replicas
	for r := range replicas {
		// A single seed serves any number of replicas, each with its own stream.
		seed, stream := seeds[0], hash.Sum64()
		if len(seeds) == replicas {
			seed = seeds[r]
		} else {
			stream += uint64(r)
		}
		initial(rand.New(rand.NewPCG(seed, stream)), dims, values[r*size:(r+1)*size])
	}
	return FromFloat64(shape, values)
}

// FromFloat64 returns a tensor of the shape's type from values in row-major order. It panics on a type that CheckType
// refuses.
func FromFloat64(shape shapes.Shape, values []float64) *tensors.Tensor {
	if err := CheckType(shape.DType); err != nil {
		panic(fmt.Errorf("params: making a tensor of shape %s: %w", shape, err))
	}
	if shape.DType == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(values, shape.Dimensions...)
	}
	narrow := make([]float32, len(values))
	for i, v := range values {
		narrow[i] = float32(v)
	}
	return tensors.FromFlatDataAndDimensions(narrow, shape.Dimensions...)
}

// NotFinite returns the index of the first value that is NaN or infinite, also as a float32; -1 if all are finite.
func NotFinite(values []float64) int {
	return slices.IndexFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(float64(float32(v)), 0) })
}

// ToFloat64 returns the entries of a Float32 or Float64 tensor in row-major order. Other types are an error.
func ToFloat64(t *tensors.Tensor) ([]float64, error) {
	switch t.DType() {
	case dtypes.Float64:
		return tensors.CopyFlatData[float64](t)
	case dtypes.Float32:
		narrow, err := tensors.CopyFlatData[float32](t)
		wide := make([]float64, len(narrow))
		for i, v := range narrow {
			wide[i] = float64(v)
		}
		return wide, err
	}
	return nil, fmt.Errorf("a tensor of type %s has no float64 values; it must be Float32 or Float64", t.DType())
}

// Values returns the entries of the store's variable at path, such as "/model/output/weights", in row-major order, and
// its shape. It is an error if there is no such variable.
func Values(store *model.Store, path string) ([]float64, shapes.Shape, error) {
	v := store.GetVariable(path)
	if v == nil {
		return nil, shapes.Shape{}, fmt.Errorf("params: there is no variable %s", path)
	}
	value, err := v.Value()
	if err != nil {
		return nil, shapes.Shape{}, fmt.Errorf("params: reading %s: %w", path, err)
	}
	values, err := ToFloat64(value)
	if err != nil {
		return nil, shapes.Shape{}, fmt.Errorf("params: reading %s: %w", path, err)
	}
	return values, value.Shape(), nil
}

// CheckType returns an error unless dtype is Float32 or Float64, the types of parameters.
func CheckType(dtype dtypes.DType) error {
	if dtype != dtypes.Float32 && dtype != dtypes.Float64 {
		return fmt.Errorf("the type is %s; it must be %s or %s", dtype, dtypes.Float32, dtypes.Float64)
	}
	return nil
}

// An Initializer sets one replica's values (row-major, shape dims) to their initial values.
type Initializer func(rng *rand.Rand, dims []int, values []float64)

// Constant gives every entry the same initial value.
func Constant(value float64) Initializer {
	return func(_ *rand.Rand, _ []int, values []float64) {
		for i := range values {
			values[i] = value
		}
	}
}

// Normal draws every initial value from N(mean, std^2).
func Normal(mean, std float64) Initializer {
	return func(rng *rand.Rand, _ []int, values []float64) {
		for i := range values {
			values[i] = mean + std*rng.NormFloat64()
		}
	}
}

// Uniform draws every initial value from U(-bound, bound).
func Uniform(bound float64) Initializer {
	return func(rng *rand.Rand, _ []int, values []float64) {
		for i := range values {
			values[i] = bound * (2*rng.Float64() - 1)
		}
	}
}

// Orthogonal is an Initializer that gives a [rows, columns] matrix random orthonormal rows: the Q factor of a Gaussian
// matrix, which is uniform because R's diagonal is made positive. If there are more rows than columns, each block of
// `columns` rows is orthonormal.
func Orthogonal(rng *rand.Rand, dims []int, values []float64) {
	rows, columns := dims[0], dims[1]
	for first := 0; first < rows; first += columns {
		count := min(columns, rows-first)
		gaussian := mat.NewDense(columns, count, nil)
		for i := range columns {
			for j := range count {
				gaussian.Set(i, j, rng.NormFloat64())
			}
		}
		var qr mat.QR
		var q, r mat.Dense
		qr.Factorize(gaussian)
		qr.QTo(&q)
		qr.RTo(&r)
		for j := range count {
			sign := 1.0
			if r.At(j, j) < 0 {
				sign = -1
			}
			for i := range columns {
				values[(first+j)*columns+i] = sign * q.At(i, j)
			}
		}
	}
}

// KaimingNormal draws initial weights from N(0, 2/fanIn), which keeps the variance of activations through ReLU layers
// (He et al. 2015).
func KaimingNormal(fanIn int) Initializer { return Normal(0, math.Sqrt(2/float64(fanIn))) }

// Dense returns the deterministic linear map x W + b: [..., batch, in] -> [..., batch, units]. W starts as
// KaimingNormal, b as in Bias; both have the role Weight.
func Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	in := x.Shape().Dim(-1)
	w := New(s, x, "weights", Weight, KaimingNormal(in), in, units)
	return ops.Affine(x, w, Bias(s, x, units))
}

// Bias returns the parameter "bias" of a dense layer, [..., 1, units], for its inputs x, [..., batch, in]. Its initial
// values are drawn from U(-1/sqrt(in), 1/sqrt(in)), as in PyTorch's linear layers. With 0, all ReLUs of the first layer
// would have their kink at the input 0, and the energy of the next layer's input would vanish there.
func Bias(s *model.Scope, x *graph.Node, units int) *graph.Node {
	bound := 1 / math.Sqrt(float64(x.Shape().Dim(-1)))
	return New(s, x, "bias", Weight, Uniform(bound), 1, units)
}

package where

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// Each method has decisionSeeds seeds on each problem. On the bandit furtherSeeds follow for question 6, and then placeSeeds for
// question 14. decisionSteps is the number of training steps in each round, and decisionDraws a network's number of functions.
const decisionSeeds, furtherSeeds, placeSeeds, decisionSteps, decisionDraws = 20, 100, 200, 300, 100

// poolSet and actionSet are the names of the sets from which a decision chooses.
const poolSet, actionSet = "pool", "actions"

// observed is a set of examples with one more: input number i of another set, with a target.
func observed(d, of train.Dataset, i int, target float64) train.Dataset {
	inputs, x := d.Inputs.(nets.Floats), of.Inputs.(nets.Floats)
	inputs.Values = append(slices.Clip(inputs.Values), x.Values[i*x.Size():(i+1)*x.Size()]...)
	return train.Dataset{Inputs: inputs, Targets: append(slices.Clip(d.Targets), target)}
}

// A Pool is a UCI data set with targets for only some training examples at first, drawn at random for each split. The
// set "pool" has the others, and "test" is the test part.
type Pool struct {
	Data  uci.Data
	First int
}

// Splits implements experiment.Source.
func (p Pool) Splits() int { return p.Data.Splits() }

// TestTrain is that of the data.
func (p Pool) TestTrain(split int) float64 { return p.Data.TestTrain(split) }

// Load implements experiment.Source.
func (p Pool) Load(ctx context.Context, split int) (experiment.Data, error) {
	d, err := p.Data.Load(ctx, split)
	if err != nil {
		return d, err
	}
	whole := d.Train
	if p.First < 1 || p.First >= whole.Len() {
		return d, fmt.Errorf("where.Pool.First is %d; there are %d training examples, and some must be left for the pool", p.First, whole.Len())
	}
	none := train.Dataset{Inputs: nets.Rows(nil, whole.Inputs.(nets.Floats).Size())}
	parts := [2]train.Dataset{none, none}
	for k, i := range rand.New(rand.NewPCG(uint64(split), 0)).Perm(whole.Len()) {
		part := &parts[min(k/p.First, 1)]
		*part = observed(*part, whole, i, whole.Targets[i])
	}
	d.Train = parts[0]
	d.Sets = append(d.Sets, experiment.Set{Name: poolSet, Dataset: parts[1]})
	return d, nil
}

// Acquisition is active learning from a Pool: after each training but the last, the pool's examples with the largest
// variances of the function are added to the training examples. For the number n of training examples it measures the test
// set ("rmse_n" and "nll_n"), and the mean height of both learning curves ("rmse_area", "nll_area").
type Acquisition struct {
	Trainings, Add int
	// Random adds examples at random instead.
	Random bool
	// Learner, if not nil, trains and predicts instead of the engine.
	Learner experiment.Program
}

// FormerDecision keeps the identity of stored results; see experiment.Experiment.Spec.
func (Acquisition) FormerDecision() {}

// Check implements experiment.Program.
func (a Acquisition) Check(e experiment.Experiment) error {
	if a.Trainings < 2 || a.Add < 1 {
		return fmt.Errorf("where.Acquisition has Trainings %d and Add %d; a learning curve needs at least 2 and 1", a.Trainings, a.Add)
	}
	return checkDecision(e, a.Learner)
}

// checkDecision refuses metrics of predictions, and what a learner refuses.
func checkDecision(e experiment.Experiment, learner experiment.Program) error {
	if len(e.Task.Metrics) > 0 {
		return fmt.Errorf("a %T returns the numbers itself, and predicts no sets; leave Task.Metrics out", e.Method.Program)
	}
	if e.Method.Program = learner; learner != nil {
		return learner.Check(e)
	}
	return nil
}

// Run implements experiment.Program.
func (a Acquisition) Run(ctx context.Context, e experiment.Experiment, d experiment.Data, progress func(float64, string)) (*experiment.Predictions, error) {
	return decide(ctx, e, d, progress, a.Learner, a.Trainings, a.choose)
}

// choose finds the numbers of decide.
func (a Acquisition) choose(d experiment.Data, random *rand.Rand, learn learning) (map[string]float64, error) {
	pool, found := d.Sets[1].Dataset, map[string]float64{}
	if needed := (a.Trainings - 1) * a.Add; needed > pool.Len() {
		return nil, fmt.Errorf("where.Acquisition adds %d examples, and the pool has %d", needed, pool.Len())
	}
	left := random.Perm(pool.Len())
	for round := 0; ; round++ {
		sets, err := learn(round, d)
		if err != nil {
			return nil, err
		}
		nll, err := sets[0].NLL(d.Unit)
		if err != nil {
			return nil, err
		}
		mean, _ := sets[0].Moments()
		share := 1 / float64(a.Trainings-1) // of the steps of a curve, which are equally long
		if round == 0 || round == a.Trainings-1 {
			share /= 2
		}
		for name, v := range map[string]float64{experiment.MetricRMSE: metrics.RMSE(mean, sets[0].Targets) * d.Unit, experiment.MetricNLL: nll} {
			found[pointOf(name, d.Train.Len())] = v
			found[name+areaSuffix] += share * v
		}
		if round == a.Trainings-1 {
			return found, nil
		}
		if _, std := sets[1].Moments(); !a.Random {
			slices.SortStableFunc(left, func(i, j int) int { return cmp.Compare(std[j], std[i]) })
		}
		for _, i := range left[:a.Add] {
			d.Train = observed(d.Train, pool, i, pool.Targets[i])
		}
		left = left[a.Add:]
	}
}

// areaSuffix ends the name of the mean height of a curve, and pointOf names its points.
const areaSuffix = "_area"

func pointOf(metric string, n int) string { return fmt.Sprintf("%s_%d", metric, n) }

// Bandits are problems like the bandit of the Neural Testbed (Osband et al. 2022), one for each split. An action is a list
// of standard normal numbers. Its expected reward is the output of a ReLU network with two hidden layers of 50 units,
// weights from N(0, 1/inputs) and biases from N(0, 1); over the actions of a problem, expected rewards are standardised. The
// set "actions" has all actions with their expected rewards. The training examples are the first actions, chosen at
// random, with rewards.
type Bandits struct {
	Actions, Features, First int
	Noise                    float64 // the standard deviation of a reward around the expected one
}

// Splits implements experiment.Source.
func (b Bandits) Splits() int { return decisionSeeds + furtherSeeds + placeSeeds }

// Load implements experiment.Source.
func (b Bandits) Load(_ context.Context, split int) (experiment.Data, error) {
	random := rand.New(rand.NewPCG(uint64(split), 0))
	normal := func(n int, std float64) []float64 {
		all := make([]float64, n)
		for i := range all {
			all[i] = std * random.NormFloat64()
		}
		return all
	}
	actions := normal(b.Actions*b.Features, 1)
	of := slices.Collect(slices.Chunk(actions, b.Features)) // the features of each action, layer by layer
	for _, units := range []int{50, 50, 1} {
		next := make([][]float64, b.Actions)
		for range units {
			weights, bias := normal(len(of[0]), 1/math.Sqrt(float64(len(of[0])))), random.NormFloat64()
			for i, h := range of {
				v := floats.Dot(weights, h) + bias
				if units > 1 {
					v = max(v, 0)
				}
				next[i] = append(next[i], v)
			}
		}
		of = next
	}
	expected := slices.Concat(of...)
	mean, std := stat.PopMeanStdDev(expected, nil)
	floats.AddConst(-mean, expected)
	floats.Scale(1/std, expected)
	set := train.Dataset{Inputs: nets.Rows(actions, b.Features), Targets: expected}
	first := train.Dataset{Inputs: nets.Rows(nil, b.Features)}
	for range b.First {
		i := random.IntN(b.Actions)
		first = observed(first, set, i, expected[i]+b.Noise*random.NormFloat64())
	}
	return experiment.Data{Train: first, Sets: []experiment.Set{{Name: actionSet, Dataset: set}}}, nil
}

// Thompson is Thompson sampling on one of Bandits: in each round it draws one of the network's functions, and takes the
// action with its highest value. The network is trained on all rewards before each batch of rounds. It measures the regret
// so far, how much more reward the best action would have been expected to give, after each batch ("regret_n", n rounds).
type Thompson struct {
	Trainings, Batch int
	Noise            float64 // of a reward
	// Random takes actions at random instead, and trains nothing.
	Random bool
	// Explore is the share of rounds with an action at random, as in epsilon-greedy choice.
	Explore float64
	// Learner, if not nil, trains and predicts instead of the engine.
	Learner experiment.Program
}

// FormerDecision keeps the identity of stored results; see experiment.Experiment.Spec.
func (Thompson) FormerDecision() {}

// Check implements experiment.Program.
func (t Thompson) Check(e experiment.Experiment) error {
	if t.Trainings < 1 || t.Batch < 1 || !(t.Noise >= 0) || !(t.Explore >= 0 && t.Explore < 1) {
		return fmt.Errorf("where.Thompson has Trainings %d, Batch %d, Noise %g and Explore %g; at least 1, 1 and 0 are needed, and a share below 1", t.Trainings, t.Batch, t.Noise, t.Explore)
	}
	return checkDecision(e, t.Learner)
}

// metricRegret is the name of a bandit's regret.
const metricRegret = "regret"

// Run implements experiment.Program.
func (t Thompson) Run(ctx context.Context, e experiment.Experiment, d experiment.Data, progress func(float64, string)) (*experiment.Predictions, error) {
	return decide(ctx, e, d, progress, t.Learner, t.Trainings, t.choose)
}

// choose finds the numbers of decide.
func (t Thompson) choose(d experiment.Data, random *rand.Rand, learn learning) (map[string]float64, error) {
	actions, regret, explore, found := d.Sets[0].Dataset, 0.0, t.Explore, map[string]float64{}
	if t.Random {
		explore = 1
	}
	best := slices.Max(actions.Targets)
	for round := range t.Trainings {
		var functions [][]float64
		if !t.Random {
			sets, err := learn(round, d)
			if err != nil {
				return nil, err
			}
			if functions = sets[0].Mean; sets[0].Std != nil {
				return nil, errors.New("where.Thompson draws functions, and the prediction is a distribution in closed form")
			}
		}
		for range t.Batch {
			// Both numbers are drawn by all methods, so that they have the same noise.
			choice, noise := random.Float64(), t.Noise*random.NormFloat64()
			var action int
			if choice < explore {
				action = int(choice / explore * float64(actions.Len()))
			} else {
				action = floats.MaxIdx(functions[int((choice-explore)/(1-explore)*float64(len(functions)))])
			}
			regret += best - actions.Targets[action]
			d.Train = observed(d.Train, actions, action, actions.Targets[action]+noise)
		}
		found[pointOf(metricRegret, (round+1)*t.Batch)] = regret
	}
	return found, nil
}

// A learning trains networks on the data of a round, and predicts all sets.
type learning func(round int, d experiment.Data) ([]experiment.Prediction, error)

// decide carries out the decisions of an experiment in rounds, and returns the numbers that choose finds. In each round networks
// are trained anew, by a learner if there is one, from other initial values, on what was observed so far. The random choices are those
// of all methods with the experiment's split and seed.
func decide(ctx context.Context, e experiment.Experiment, d experiment.Data, progress func(float64, string), learner experiment.Program, rounds int,
	choose func(d experiment.Data, random *rand.Rand, learn learning) (map[string]float64, error)) (*experiment.Predictions, error) {
	found, err := choose(d, rand.New(rand.NewPCG(e.Seed, uint64(e.Split))), func(round int, d experiment.Data) ([]experiment.Prediction, error) {
		now := e
		now.Split, now.Seed = 0, nets.SeedOf(e.Seed, e.Split-1, round*max(e.Method.Members, 1)) // seeds of this split that no earlier round has used
		hear := func(done float64, note string) {
			progress((float64(round)+done)/float64(rounds), fmt.Sprintf("round %d of %d, %s", round+1, rounds, note))
		}
		p, err := &experiment.Predictions{}, error(nil)
		if now.Method.Program = learner; learner != nil {
			p, err = learner.Run(ctx, now, d, hear)
		} else {
			p.Sets, err = experiment.PredictOne(ctx, now, d, hear)
		}
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", round, err)
		}
		return p.Sets, nil
	})
	return &experiment.Predictions{Metrics: found}, err
}

// An agent is a method that decides, or chooses at random.
type agent struct {
	experiment.Method
	random      bool
	explore     float64 // the share of rounds in which it chooses at random
	independent bool    // each action has a draw of its own
}

// called is a method under another key and name.
func called(m experiment.Method, key, name string) experiment.Method {
	m.Key, m.Name = key, name
	return m
}

// independent is an agent with a draw of its own for each action.
func independent(m experiment.Method) agent {
	return agent{Method: called(m, m.Key+"-independent", m.Name+", independent draws"), independent: true}
}

// agentsOf are methods that decide.
func agentsOf(list []experiment.Method) (all []agent) {
	for _, m := range list {
		all = append(all, agent{Method: m})
	}
	return all
}

// laterAgents have as many functions as the others.
func laterAgents() []agent { return agentsOf(methods.AfterTraining(decisionDraws)) }

// agents are the methods of all questions, density first, and a network of density layers whose choices are random.
func agents() []agent {
	return append(agentsOf(compared), agent{Method: called(methods.Density, "random", "Random choice"), random: true})
}

// banditAgents are the agents of question 6: question 4's, and the controls.
func banditAgents() []agent {
	all := append(agents(), agent{Method: experiment.Method{
		Key: "density-mean-actions", Name: "Density, mean energy of the actions", Layers: dul.Density{Energy: evenEnergy{Predicted: true}},
	}})
	for _, k := range []float64{2, 4, 8, 16} {
		all = append(all, agent{Method: times(k)})
	}
	all = append(all, independent(methods.DensityMean))
	for _, share := range []float64{0, 0.05, 0.1} {
		greedy := called(methods.Deterministic, fmt.Sprintf("greedy-%g", 100*share), fmt.Sprintf("Greedy, %g%% at random", 100*share))
		all = append(all, agent{Method: greedy, explore: share})
	}
	return append(all, laterAgents()...)
}

// A decisionProblem is a row of decisionTable.
type decisionProblem struct {
	name, title string
	data        experiment.Source
	noise       float64 // known, of a standardised target
	decide      func(a agent) experiment.Program
}

// acquisitions are the problems of active learning.
func acquisitions() []decisionProblem {
	on := func(dataset string, noise float64) decisionProblem {
		decide := func(a agent) experiment.Program { return Acquisition{11, 10, a.random, a.Program} }
		return decisionProblem{dataset, uci.DatasetTitle(dataset), Pool{uci.Data{Name: dataset}, 20}, noise, decide}
	}
	return []decisionProblem{on("boston", 0.3), on("concrete", 0.3), on("energy", 0.1), on("wine", 0.8), on("yacht", 0.1)}
}

// banditRounds are the rounds of the bandit, and banditTrainings the trainings among them.
const banditRounds, banditTrainings = 500, 10

// bandit is the problem of Thompson sampling.
func bandit() decisionProblem {
	const noise = 1.0
	return decisionProblem{
		name: "bandit", title: "Bandit", data: Bandits{Actions: 50, Features: 10, First: 20, Noise: noise}, noise: noise,
		decide: func(a agent) experiment.Program {
			return Thompson{banditTrainings, banditRounds / banditTrainings, noise, a.random, a.explore, a.Program}
		},
	}
}

// runs are an agent's experiments, one for each seed: first the seeds of question 4, then of question 6, then of question 14.
func (p decisionProblem) runs(a agent) experiment.Experiments {
	small := smallNetwork(p.name, p.noise, decisionSteps, 1e-2, decisionDraws)
	return experiment.Grid{Preset: small, Change: func(e *experiment.Experiment) {
		e.Preset, e.Recipe.Coherent, e.Method.Program = "where.Decisions", !a.independent, p.decide(a)
	}}.Of(p.data, a.Method)
}

// The groups of rows of decisionTable.
const groupError, groupNLL, groupRegret = "area under the RMSE", "area under the NLL", "regret"

// decisionTable answers question 4: the area under each learning curve and the bandit's regret, of all agents. Density is
// tested against every other agent; the verdicts of active learning, and those of the bandit, hold together (Holm).
func decisionTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-decisions", map[string]int{"Seeds": decisionSeeds})}
	s.Columns, s.Legend = []string{"Problem"}, "▲ better, ▽ worse than density, significant at 5% for all of active learning together, and for the bandit. No mark: not significant, or not tested."
	list := append(agents(), laterAgents()...)
	for _, a := range list {
		s.Columns = append(s.Columns, a.Name)
	}
	add := func(group, metric string, tested bool, problems ...decisionProblem) {
		for _, p := range problems {
			var cells []tables.Cell
			density := p.runs(list[0])[:decisionSeeds]
			for i, a := range list {
				mean := tables.Number{Name: metric, Decimals: 3}.Over(p.runs(a)[:decisionSeeds])
				mean.Best = "lowest"
				against := mean.Against(density)
				against.Family, against.NoVerdict = group, !tested || i == 0 || isLater(a.Method)
				cells = append(cells, against)
			}
			s.Add(group, p.title, cells...)
		}
	}
	add(groupError, experiment.MetricRMSE+areaSuffix, true, acquisitions()...)
	add(groupNLL, experiment.MetricNLL+areaSuffix, false, acquisitions()...)
	add(groupRegret, pointOf(metricRegret, banditRounds), true, bandit())
	return s.Make(x)
}

// banditTable answers question 6: the regret of every agent of the bandit on the seeds that came after question 4's, and its
// ratio to density's, with the bootstrap interval over seeds. All but later agents are tested against density (Holm). Then it
// answers question 14 in the same way, with a family of its own.
func banditTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-bandit", map[string]int{"Seeds": furtherSeeds, "Places": placeSeeds}), Down: true}
	s.Columns = []string{"Agent", "Regret", "Over the first"}
	s.Legend = "▲ less, ▽ more regret than the first of its block, significant at 5%: for all agents of the first block together, and for the three tests of the others. No mark: not significant, or not tested."
	regret := func(a agent, seeds [2]int) tables.Mean {
		return tables.Number{Name: pointOf(metricRegret, banditRounds), Decimals: 1}.Over(bandit().runs(a)[seeds[0]:seeds[1]])
	}
	const until = decisionSeeds + furtherSeeds
	six, fourteen := [2]int{decisionSeeds, until}, [2]int{until, until + placeSeeds}
	density, apart, even := agents()[0], independent(methods.Density), independent(methods.DensityMean)
	missing := slices.ContainsFunc([]agent{density, apart, even}, func(a agent) bool { return len(x.Units(regret(a, fourteen))) < placeSeeds })
	add := func(group, family string, seeds [2]int, first agent, others ...agent) {
		base := regret(first, seeds)
		s.Add(group, first.Name, base, tables.Words("1"))
		for _, a := range others {
			tested := regret(a, seeds).Against(base.Of)
			tested.Family, tested.NoVerdict = family, isLater(a.Method) || group != "" && missing // nothing of question 14 without all of its runs
			s.Add(group, a.Name, tested, over(x.Units(tested.Mean), x.Units(base), seeds[1]-seeds[0]))
		}
	}
	add("", "", six, density, banditAgents()[1:]...)
	add(groupPlaces, groupPlaces, fourteen, density, apart, even)
	add("the same seeds: the place of the noise", groupPlaces, fourteen, apart, even)
	return s.Make(x)
}

// groupPlaces names the block of question 14's agents.
const groupPlaces = "seeds of question 14"

// banditPicture is the drawn part of banditTable: question 6.
func banditPicture(x *tables.Index) (report.Table, error) {
	t, err := banditTable(x)
	t.Rows = slices.DeleteFunc(t.Rows, func(r report.Row) bool { return r.Group != "" })
	return t, err
}

// over is the ratio of the means of two agents, paired over a number of seeds, with its bootstrap interval.
func over(a, b map[int]float64, seeds int) tables.Cell {
	of := slices.Sorted(maps.Keys(a))
	if len(of) < seeds || !slices.Equal(of, slices.Sorted(maps.Keys(b))) {
		return tables.Done{NotRun: true}
	}
	var ours, theirs []float64
	for _, seed := range of {
		ours, theirs = append(ours, a[seed]), append(theirs, b[seed])
	}
	ratio := func(at []float64) float64 { return metrics.MeanAt(ours)(at) / metrics.MeanAt(theirs)(at) }
	low, high := metrics.Bootstrap([]int{len(of)}, bootstrapDraws, bootstrapSeed, tables.Confidence, ratio)
	return tables.Words("%.2f [%.2f, %.2f]", stat.Mean(ours, nil)/stat.Mean(theirs, nil), low, high)
}

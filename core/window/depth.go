package window

import "math"

// What a token shown is worth falls with the square of its distance from the end of the prompt: right at the end worthShare times what it costs to keep it
// cached, at worthReach tokens a quarter of that, and so on. Swept on the development data, see docs/cost.md.
const (
	worthShare = 12
	worthReach = 14_000
)

// places is how many low marks are compared.
const places = 64

// lowMark returns where a step down from high tokens ends, between least and most, so that a call of the model costs least on average: what a step bills
// again, spread over the calls until the next, and the cached tokens in between, less what they are worth. price is what a cached token costs, relative to
// one that is not; added is what a call adds to the window, in tokens.
//
// A step lasts longer the deeper it goes, and more so the slower the window grows; what it keeps is billed again in full. So the depth grows with the
// square root of growth and window, and beyond that in windows so large that their oldest part is worth less than it costs.
func lowMark(high, least, most int, price float64, added int) int {
	if most <= least || price >= 1 {
		return max(most, 0)
	}
	best, low := math.Inf(1), least
	for i := range places + 1 {
		at := least + (most-least)*i/places
		if c := callCost(float64(at), float64(high), price, float64(max(added, 1))); c < best {
			best, low = c, at
		}
	}
	return low
}

// callCost is what lowMark compares.
func callCost(low, high, price, added float64) float64 {
	again := (1 - price) * low * added / (high - low)
	return again + (kept(high, price)-kept(low, price))/(high-low)
}

// kept is the cost less the worth of all tokens up to a distance from the end, for windows of all sizes up to there: the integral of
// price * size - price * worthShare * worthReach * size/(worthReach + size).
func kept(size, price float64) float64 {
	return price * (size*size/2 - worthShare*worthReach*(size-worthReach*math.Log1p(size/worthReach)))
}

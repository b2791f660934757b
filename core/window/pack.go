package window

// Pack chooses from a ranked list of costs, in rank order, whatever still fits the allowance, and skips what does not. It returns the
// chosen indices in rank order.
func Pack(costs []int, allowance int) []int {
	var chosen []int
	for i, c := range costs {
		if c <= allowance {
			allowance -= c
			chosen = append(chosen, i)
		}
	}
	return chosen
}

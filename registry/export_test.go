package registry

// PickArm returns the arm of a session and its share.
func PickArm(cfg Config, agent, session string) (string, float64) {
	arm, share := cfg.pick(agent, session)
	if arm < 0 {
		return "", share
	}
	return cfg.Arms[arm].Name, share
}

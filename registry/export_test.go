package registry

// PickArm returns the arm of a new session and its share.
func PickArm(cfg Config, agent, session string) (string, float64) {
	info := cfg.info(agent, session, "", cfg.pick(agent, session, ""), "")
	return info.Name, info.Share
}

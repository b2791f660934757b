package exact

// The words by which lasting sentences are known, in lower case: English, German, French, Spanish, Chinese, Japanese, Hindi.
var (
	ruleCues = []string{
		"always", "never", "must", "must not", "mustn't", "do not", "don't", "prefer", "prefers", "from now on", "remember", "make sure", "whenever",
		"under no circumstances", "only use", "avoid", "required", "forbidden", "not allowed", "no exceptions", "keep in mind", "i want you to",
		"at most", "at least", "no more than", "favourite", "favorite", "i like", "i hate", "rule",
		"immer", "niemals", "nie", "muss", "nicht dürfen", "bevorzuge", "ab jetzt", "bitte nicht", "merke",
		"toujours", "jamais", "il faut", "ne pas", "préfère", "désormais",
		"siempre", "nunca", "debe", "prefiero", "no uses", "a partir de ahora", "recuerda",
		"必须", "必須", "不要", "不得", "禁止", "总是", "總是", "一律", "永远", "绝不", "绝对不", "请勿", "記住", "记住", "优先", "偏好", "喜欢", "今后", "以后都", "只能", "务必", "不允许", "切勿", "规则",
		"絶対に", "必ず", "しないで", "してはいけない", "今後は", "好み",
		"हमेशा", "कभी", "ज़रूर", "जरूर", "अवश्य", "मत", "न करें", "याद रखें", "पसंद", "प्राथमिकता", "अनिवार्य", "केवल", "नियम", "ज़रूरी", "जरूरी",
	}
	taskCues = []string{
		"todo", "fixme", "next step", "next steps", "remaining", "still need", "still needs", "left to do", "not yet", "follow up", "pending", "open question",
		"blocked", "waiting for", "later we", "[ ]",
		"noch offen", "noch zu tun", "à faire", "pendiente", "por hacer",
		"待办", "待辦", "还需要", "尚未", "接下来", "下一步", "待处理", "未完成", "等待",
		"残り", "未対応", "次に",
		"बाकी", "अगला कदम", "लंबित", "अभी तक नहीं", "करना है",
	}
	decisionCues = []string{
		"decided", "we'll use", "we will use", "let's use", "let's go with", "go with", "chose", "choose", "instead of", "agreed", "settled on", "switched to",
		"the plan is", "root cause", "turned out", "because",
		"entschieden", "stattdessen", "décidé", "plutôt que", "decidimos", "en lugar de",
		"决定", "決定", "改用", "选择", "采用", "方案", "原因是", "确定",
		"採用", "निर्णय", "तय", "फैसला", "बजाय", "चुना",
	}
	negationCues = []string{
		"not", "no", "cannot", "can't", "isn't", "doesn't", "didn't", "won't", "wasn't", "without", "failed", "fails", "broken", "unsupported",
		"nicht", "kein", "keine", "ohne", "pas", "sans", "sin",
		"不", "没有", "沒有", "未", "无法", "無法", "失败", "失敗",
		"ない", "नहीं", "बिना", "विफल",
	}
)

hidden tea

# Adds up the prices of a basket. From 100 on, ten percent are taken off.
total() {
	sum=0
	for price in "$@"; do
		sum=$((sum + price))
	done
	if [ "$sum" -gt 100 ]; then
		sum=$((sum - sum / 10))
	fi
	echo "$sum"
}

# A probe for tests: it creates no units, and its first argument selects its answers.
echo "ready sh"
while read -r command n hold; do
  case "$1 $command" in
  "too-few park") echo "parked $((n - 1)) 1000 -" ;;
  "too-many park") echo "parked $((n + 1)) 1000 -" ;;
  "nonsense park") echo hello ;;
  "refuses park")
    echo "there is no room" >&2
    exit 1
    ;;
  "leaves park") exit 0 ;;
  *" park")
    echo "parked $n 1000 -"
    parked=$n
    held=$hold
    ;;
  "hurried wake") if [ "$held" -lt 3000 ]; then echo "woken 1 $parked 1000"; else echo "woken 0 $parked 1000"; fi ;;
  "hangs wake")
    echo "one of them is lost" >&2
    read -r _
    ;;
  "mumbles wake")
    printf 'it will not do: \377\n' >&2
    kill -9 $$
    ;;
  "early wake") echo "woken 1 $parked 1000" ;;
  "lost wake") echo "woken 0 $((parked - 1)) 1000" ;;
  "twice wake") echo "woken 0 $((parked + 1)) 1000" ;;
  *" wake") echo "woken 0 $parked 1000" ;;
  *" rest") echo "rested -" ;;
  *" trips") echo "trips none no unit receives" ;;
  esac
done

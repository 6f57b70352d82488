# shown_shell.sh PROGRAM_DIR LINES FOLDER: runs the lines of a document that begin with `fovea `, in order, in an
# empty folder, and fails with the first one that fails.
set -eu
PATH=$1:$PATH
lines=$2
folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
sed -n 's/ *#.*//; /^fovea /p' "$lines" | while IFS= read -r line; do
  echo "\$ $line"
  sh -c "$line" </dev/null
done
rm -rf "$folder"

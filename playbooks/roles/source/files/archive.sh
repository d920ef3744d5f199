# Makes an archive of one commit, where fleetmark runs: archive.sh GIT COMMIT SHA256 [CREDENTIALS]
# SHA256 is that of `git archive COMMIT`.
# CREDENTIALS is a file of git-credential-store, in which those lie that *** stands for in GIT.
# Prints its path. The last line of standard error says what is wrong and what to do.
set -eu
git=$1 commit=$2 sha256=$3 credentials=${4:-}
export LC_ALL=C GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-ssh -o BatchMode=yes}"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fleetmark
archive=$cache/$sha256-$commit.tar
instead="give the sources as a tar file with the parameters source and source_sha256"

fail() { echo "$*" >&2; exit 1; }

work=
trap 'rm -rf "$work"' EXIT
if [ ! -s "$archive" ]; then
    command -v git >/dev/null || fail "there is no git where fleetmark runs: install it there, or $instead"
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/.git.XXXXXX")
    run() { git --git-dir "$work" "$@" >>"$work/said" 2>&1; }
    git init -q --bare "$work"
    case $git in
        *://\*\*\*@*)
            git="${git%%://*}://${git#*://\*\*\*@}"
            export credentials # a shell of git's own reads the name
            # shellcheck disable=SC2016
            git --git-dir "$work" config credential.helper '!git credential-store --file="$credentials"'
            ;;
    esac
    # Most servers hand out any commit by its hash. Where one does not, it is among all that branches and tags lead to.
    run fetch -q --depth 1 -- "$git" "$commit" || run fetch -q -- "$git" '+refs/heads/*:refs/heads/*' '+refs/tags/*:refs/tags/*' ||
        fail "could not fetch $git: $(grep -m 1 -E 'fatal|error' "$work/said"); check that it can be reached from where fleetmark runs, or $instead"
    run cat-file -e "$commit^{commit}" || fail "$git has no commit $commit: correct the parameter commit"
    run -c tar.umask=0002 archive -o "$work/archive.tar" "$commit"
    found=$(sha256sum "$work/archive.tar" | cut -d ' ' -f 1)
    [ "$found" = "$sha256" ] || fail "commit $commit has sha256 $found, not $sha256: correct the parameter commit_sha256, or do not use $git"
    mv -f "$work/archive.tar" "$archive"
fi
echo "$archive"

# Finds this machine's .NET, Mono and compiler. To be sourced; expects $here, the folder dotnet/.
toolchain=$here/build/toolchain
mono_libraries=/usr/lib/mono/4.5
windows=$toolchain/dotnet-windows
pipelines=$toolchain/sdk-3.1/System.IO.Pipelines.dll

# Finds the newest .NET SDK from version 8 on. Sets sdk (its folder) and sdk_host.
find_sdk() {
    local line
    command -v dotnet >/dev/null || return 1
    line=$(dotnet --list-sdks 2>/dev/null | grep -E '^([89]|[1-9][0-9])\.' | tail -1)
    [[ $line =~ ^([^ ]+)\ \[(.*)\]$ ]] || return 1
    sdk=${BASH_REMATCH[2]}/${BASH_REMATCH[1]}
    sdk_host=$(command -v dotnet)
    [[ -f $sdk/Roslyn/bincore/csc.dll ]]
}

# Prints the path of a Python that has pip.
python_with_pip() {
    local candidate
    for candidate in "${PYTHON:-}" "$here/../.venv/bin/python" python3; do
        if [[ -n $candidate ]] && "$candidate" -m pip --version >/dev/null 2>&1; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

# Finds the .NET 8 host, the folder of its reference assemblies, and the compiler's command.
find_net8() {
    local root
    if find_sdk; then
        net8_host=$sdk_host
        root=$(dirname "$(dirname "$sdk")")
        net8_references=$(ls -d "$root"/packs/Microsoft.NETCore.App.Ref/8.*/ref/net8.0 2>/dev/null | tail -1)
        [[ -n $net8_references ]] \
            || net8_references=$(ls -d "$root"/shared/Microsoft.NETCore.App/* | sort -V | tail -1)
        compiler=("$sdk_host" "$sdk/Roslyn/bincore/csc.dll" -nologo)
    else
        net8_host=$toolchain/dotnet/dotnet
        net8_references=$(echo "$toolchain"/dotnet/shared/Microsoft.NETCore.App/*)
        compiler=("$net8_host" "$toolchain/roslyn/compile.dll")
        [[ -x $net8_host && -f $toolchain/roslyn/compile.dll ]]
    fi
}

# Finds the project system of .NET SDK 3.1, the reference assemblies of netstandard 2.1, and System.IO.Pipelines.
find_project_system() {
    project_system=$toolchain/sdk-3.1/sdk/3.1.102
    [[ -f $project_system/MSBuild.dll && -f $pipelines && -d $toolchain/sdk-3.1/packs/NETStandard.Library.Ref/2.1.0 ]]
}

# build_project HOME PROJECT OPTIONS...: runs the project system of .NET SDK 3.1 for netstandard2.1. That SDK supports
# neither C# 9 nor net8.0, and its runtime does not start on current systems. Therefore this uses another compiler, only
# one framework, and the .NET 8 runtime. Needs find_net8 and find_project_system.
build_project() {
    local home=$1 project=$2
    shift 2
    # MSB3088, MSB3101: this old MSBuild has a cache that .NET 8 can neither write nor read.
    env DOTNET_ROOT="$toolchain/dotnet" DOTNET_HOST_PATH="$net8_host" DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 \
        HOME="$home" MSBUILD_EXE_PATH="$project_system/MSBuild.dll" MSBuildSDKsPath="$project_system/Sdks" \
        MSBuildExtensionsPath="$project_system/" \
        "$net8_host" exec --roll-forward Major "$project_system/MSBuild.dll" -restore -nologo -verbosity:minimal \
        -nodeReuse:false -maxCpuCount:1 -warnAsError -noWarn:"MSB3088;MSB3101" -p:TargetFrameworks=netstandard2.1 \
        -p:NetCoreTargetingPackRoot="$project_system/../../packs" -p:Configuration=Release \
        -p:UseSharedCompilation=false -p:CscToolPath="$here/toolchain" -p:CscToolExe=csc "$@" "$project"
}

find_mono() {
    command -v mono >/dev/null && [[ -f $mono_libraries/mscorlib.dll ]]
}

nunit_framework() {
    ls /usr/lib/cli/nunit.framework-2.6*/nunit.framework.dll 2>/dev/null | tail -1
}

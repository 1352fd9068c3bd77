# Compiles for 64-bit Arm on another machine, with Debian's cross compiler and its libraries of that architecture
# (scripts/install-packages aarch64). Programs of the build, tests among them, run under qemu where it is there.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
find_program(BLOCKYARD_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(BLOCKYARD_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${BLOCKYARD_QEMU}")
endif()
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

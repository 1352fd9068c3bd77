"""The library as a Conan package: `conan create packaging/conan` builds it and runs test_package against it."""

from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy

required_conan_version = ">=2.0"


class Blockyard(ConanFile):
    name = "blockyard"
    version = "0.1.0"
    license = "MIT"
    description = "Allocators and containers for software with a frame budget"
    topics = ("malloc", "allocator", "containers", "games")
    settings = "os", "arch", "compiler", "build_type"
    # Both libraries are in the package: blockyard::static, blockyard::shared, and blockyard::blockyard for either.

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("blockyard runs on Linux")

    def export_sources(self):
        root = Path(self.recipe_folder).parents[1]
        copy(self, "library/*", root, self.export_sources_folder)
        copy(self, "LICENSE", root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.variables["BLOCKYARD_INSTALL"] = True
        toolchain.variables["BLOCKYARD_WERROR"] = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder="library")
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, str(Path(self.package_folder) / "licenses"))
        CMake(self).install(component="library")

    def package_info(self):
        # The package's own CMake files say more than Conan could: static, shared, and the heap in the place of malloc.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/blockyard"]
        self.cpp_info.libs = ["blockyard"]
        self.cpp_info.system_libs = ["pthread", "dl", "stdc++"]

// Included first into every source of the library (library/CMakeLists.txt): says where its code lies, so that stacks in
// reports begin with the program's own functions, whatever they and ours are called (base/stack.hpp).
//
// A label before the first function of each section of code and one behind the last: subsections of a higher number
// come later. The distances to both stand in a section whose ends the linker knows.
#pragma once

#if defined(__ELF__)
#define BY_OWN_CODE(section)                  \
  ".pushsection " section                     \
  ",0,\"ax\",%progbits\n1:\n.popsection\n"    \
  ".pushsection " section                     \
  ",8191,\"ax\",%progbits\n2:\n.popsection\n" \
  ".pushsection blockyard_code,\"a\",%progbits\n.long 1b-.,2b-.\n.popsection\n"
__asm__(BY_OWN_CODE(".text") BY_OWN_CODE(".text.unlikely") BY_OWN_CODE(".text.unlikely.") BY_OWN_CODE(".text.startup")
            BY_OWN_CODE(".text.exit"));
#undef BY_OWN_CODE
#endif

// Stands in for libGL: counts swaps and hands out its functions by name.
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int fake_swaps = 0;

void glXSwapBuffers(void* display, unsigned long drawable);
void* glXGetProcAddressARB(const char* name);
void* glXGetProcAddress(const char* name);

void glXSwapBuffers(void* display, unsigned long drawable) {
  (void)display;
  (void)drawable;
  free(malloc(32));  // drivers allocate while they present
  ++fake_swaps;
}

void* glXGetProcAddressARB(const char* name) {
  return strcmp(name, "glXSwapBuffers") == 0 ? (void*)&glXSwapBuffers : NULL;
}

void* glXGetProcAddress(const char* name) { return glXGetProcAddressARB(name); }

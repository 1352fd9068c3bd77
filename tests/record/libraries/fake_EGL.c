// Stands in for libEGL.
#include <stddef.h>
#include <string.h>

unsigned eglSwapBuffers(void* display, void* surface);
void* eglGetProcAddress(const char* name);

unsigned eglSwapBuffers(void* display, void* surface) {
  (void)display;
  (void)surface;
  return 1;
}

void* eglGetProcAddress(const char* name) {
  return strcmp(name, "eglSwapBuffers") == 0 ? (void*)&eglSwapBuffers : NULL;
}

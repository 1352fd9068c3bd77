// Presents frames by the route that its argument names. The stand-in libraries count; so must the recorder.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*swap_function)(void*, void*);
typedef void (*one_argument)(void*);
typedef void* (*lookup)(const char*);
typedef void* (*handle_lookup)(void*, const char*);

void SDL_GL_SwapWindow(void* window);
void SDL_RenderPresent(void* renderer);
void* SDL_GL_GetProcAddress(const char* name);
void glXSwapBuffers(void* display, unsigned long drawable);
void* glXGetProcAddressARB(const char* name);
void* glXGetProcAddress(const char* name);

static void* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) exit(10);
  return found;
}

static void* open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) exit(11);
  return library;
}

int main(int count, char** arguments) {
  const char* route = arguments[1];
  const char* library = count > 2 ? arguments[2] : NULL;
  enum { frames = 5 };
  for (int i = 0; i < frames; ++i) {
    free(malloc(64));
    if (strcmp(route, "none") == 0) {
    } else if (strcmp(route, "SDL_GL_SwapWindow") == 0) {
      SDL_GL_SwapWindow(NULL);
    } else if (strcmp(route, "SDL_RenderPresent") == 0) {
      SDL_RenderPresent(NULL);
    } else if (strcmp(route, "glXSwapBuffers") == 0) {
      glXSwapBuffers(NULL, 0);
    } else if (strcmp(route, "dlsym") == 0) {
      ((swap_function)find(RTLD_DEFAULT, "glXSwapBuffers"))(NULL, NULL);
    } else if (strcmp(route, "dlvsym-missing") == 0) {
      if (dlvsym(RTLD_DEFAULT, "glXSwapBuffers", "NO_SUCH_VERSION") != NULL) return 12;
    } else if (strcmp(route, "glXGetProcAddressARB") == 0) {
      ((swap_function)glXGetProcAddressARB("glXSwapBuffers"))(NULL, NULL);
    } else if (strcmp(route, "glXGetProcAddress") == 0) {
      ((swap_function)glXGetProcAddress("glXSwapBuffers"))(NULL, NULL);
    } else if (strcmp(route, "SDL_GL_GetProcAddress") == 0) {
      ((swap_function)SDL_GL_GetProcAddress("glXSwapBuffers"))(NULL, NULL);
    } else if (strcmp(route, "eglSwapBuffers") == 0) {
      ((swap_function)find(open_library(library), "eglSwapBuffers"))(NULL, NULL);
    } else if (strcmp(route, "eglGetProcAddress") == 0) {
      lookup get = (lookup)find(open_library(library), "eglGetProcAddress");
      ((swap_function)get("eglSwapBuffers"))(NULL, NULL);
    } else if (strcmp(route, "vkGetDeviceProcAddr") == 0) {
      // As real programs do: everything starts from vkGetInstanceProcAddr.
      handle_lookup instance = (handle_lookup)find(open_library(library), "vkGetInstanceProcAddr");
      handle_lookup device = (handle_lookup)instance(NULL, "vkGetDeviceProcAddr");
      ((swap_function)device(NULL, "vkQueuePresentKHR"))(NULL, NULL);
      if (device(NULL, "vkNoSuchFunction") != NULL) return 13;
    } else if (strcmp(route, "absent") == 0) {
      // The recorder's own functions are no proof that the program has such a library.
      if (dlsym(RTLD_DEFAULT, "eglSwapBuffers") != NULL || dlsym(RTLD_DEFAULT, "vkQueuePresentKHR") != NULL) return 14;
    } else {
      return 15;
    }
  }
  // The stand-in libraries' own count, for the test to compare.
  const int* swaps = dlsym(RTLD_DEFAULT, "fake_swaps");
  printf("%d\n", swaps != NULL ? *swaps : -1);
  return 0;
}

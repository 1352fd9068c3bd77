// Stands in for SDL: presents through the OpenGL function that it looked up, as the real one does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef void (*swap_function)(void*, unsigned long);

void SDL_GL_SwapWindow(void* window);
void SDL_RenderPresent(void* renderer);
void* SDL_GL_GetProcAddress(const char* name);
void* glXGetProcAddressARB(const char* name);

void SDL_GL_SwapWindow(void* window) {
  swap_function swap = (swap_function)dlsym(RTLD_DEFAULT, "glXSwapBuffers");
  swap(window, 1);
}

void SDL_RenderPresent(void* renderer) { SDL_GL_SwapWindow(renderer); }

void* SDL_GL_GetProcAddress(const char* name) { return glXGetProcAddressARB(name); }

// Sixty frames in a window that no screen shows: a texture, a picture and an event of each frame.
#include <SDL3/SDL.h>
#include <stdio.h>

#include "blockyard_sdl.h"

int main(void) {
  if (by_sdl_install() != 0) return 1;
  SDL_SetHint(SDL_HINT_VIDEO_DRIVER, "dummy");
  if (!SDL_Init(SDL_INIT_VIDEO)) return 2;
  SDL_Window* const window = SDL_CreateWindow("example", 320, 200, 0);
  SDL_Renderer* const renderer = SDL_CreateRenderer(window, "software");
  if (renderer == NULL) return 3;
  int events = 0;
  for (int frame = 0; frame < 60; ++frame) {
    SDL_Event event = {.type = SDL_EVENT_USER};
    SDL_PushEvent(&event);
    while (SDL_PollEvent(&event)) ++events;
    by_tag_push("sprites");
    SDL_Surface* const picture = SDL_CreateSurface(64, 64, SDL_PIXELFORMAT_ARGB8888);
    SDL_FillSurfaceRect(picture, NULL, 0xff00ff00u + (Uint32)frame);
    SDL_Texture* const texture = SDL_CreateTextureFromSurface(renderer, picture);
    by_tag_pop();
    SDL_DestroySurface(picture);
    SDL_RenderClear(renderer);
    SDL_RenderTexture(renderer, texture, NULL, NULL);
    SDL_RenderPresent(renderer);
    SDL_DestroyTexture(texture);
  }
  puts(events >= 60 ? "every event" : "few events");
  SDL_DestroyRenderer(renderer);
  SDL_DestroyWindow(window);
  SDL_Quit();
  return 0;
}

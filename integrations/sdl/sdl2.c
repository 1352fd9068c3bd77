// Sixty frames in a window that no screen shows: a texture, a picture and an event of each frame. In a
// phase called "counted" it prints how many blocks SDL itself says that it holds.
#include <stdio.h>

#include <SDL.h>

#include "blockyard/frame.h"
#include "blockyard_sdl.h"

int main(int count, char** arguments) {
  (void)count, (void)arguments;
  if (by_sdl_install() != 0) return 1;
  SDL_SetHint(SDL_HINT_VIDEODRIVER, "dummy");
  SDL_SetHint(SDL_HINT_RENDER_DRIVER, "software");
  if (SDL_Init(SDL_INIT_VIDEO | SDL_INIT_TIMER) != 0) return 2;
  SDL_Window* const window = SDL_CreateWindow("example", 0, 0, 320, 200, 0);
  SDL_Renderer* const renderer = SDL_CreateRenderer(window, -1, SDL_RENDERER_SOFTWARE);
  if (renderer == NULL) return 3;
  int events = 0;
  for (int frame = 0; frame < 60; ++frame) {
    SDL_Event event = {.type = SDL_USEREVENT};
    SDL_PushEvent(&event);
    while (SDL_PollEvent(&event)) ++events;
    by_tag_push("sprites");
    SDL_Surface* const picture = SDL_CreateRGBSurfaceWithFormat(0, 64, 64, 32, SDL_PIXELFORMAT_ARGB8888);
    SDL_FillRect(picture, NULL, 0xff00ff00u + (Uint32)frame);
    SDL_Texture* const texture = SDL_CreateTextureFromSurface(renderer, picture);
    by_tag_pop();
    SDL_FreeSurface(picture);
    SDL_RenderClear(renderer);
    SDL_RenderCopy(renderer, texture, NULL, NULL);
    SDL_RenderPresent(renderer);
    SDL_DestroyTexture(texture);
  }
  const int blocks = SDL_GetNumAllocations();
  by_phase_mark("counted");
  printf("%d blocks, %s\n", blocks, events >= 60 ? "every event" : "few events");
  SDL_DestroyRenderer(renderer);
  SDL_DestroyWindow(window);
  SDL_Quit();
  SDL_ClearHints();
  return 0;
}

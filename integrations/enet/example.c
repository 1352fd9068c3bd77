// 200 packets go to a server and come back, the largest in fragments.
#include <stdio.h>

#include "echo.h"

int main(void) {
  if (by_enet_initialize() != 0) return 1;
  const int came_back = echo(1, 200, 5000);
  printf("%d packets came back\n", came_back);
  enet_deinitialize();
  return came_back == 200 ? 0 : 2;
}

// Stands in for the Vulkan loader: a device's functions are other ones than the exported ones.
#include <stddef.h>
#include <string.h>

int vkQueuePresentKHR(void* queue, const void* info);
void* vkGetInstanceProcAddr(void* instance, const char* name);
void* vkGetDeviceProcAddr(void* device, const char* name);

static int present_on_device(void* queue, const void* info) {
  (void)queue;
  (void)info;
  return 0;
}

// The exported trampoline calls the device's function, as the real loader's does.
int vkQueuePresentKHR(void* queue, const void* info) { return present_on_device(queue, info); }

void* vkGetDeviceProcAddr(void* device, const char* name) {
  (void)device;
  return strcmp(name, "vkQueuePresentKHR") == 0 ? (void*)&present_on_device : NULL;
}

void* vkGetInstanceProcAddr(void* instance, const char* name) {
  (void)instance;
  if (strcmp(name, "vkGetDeviceProcAddr") == 0) return (void*)&vkGetDeviceProcAddr;
  return strcmp(name, "vkQueuePresentKHR") == 0 ? (void*)&vkQueuePresentKHR : NULL;
}

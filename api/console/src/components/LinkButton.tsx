import { Button } from '@mantine/core';
import { createLink } from '@tanstack/react-router';

/** A link to a page of the console that looks like a button. */
export const LinkButton = createLink(Button<'a'>);
